"""A still hub, empty at first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from fixtures.databases import opened
from fixtures.still_hub import StillHub
from upright.store.address import Address


@pytest.fixture
async def hub(make_address: Callable[[], Address]) -> AsyncIterator[StillHub]:
    where = make_address()
    hub = StillHub(await opened(where), where)
    yield hub
    await hub.store.close()
