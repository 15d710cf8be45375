"""A still hub for each test, on each database, empty at first; nothing may sleep for ever."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from fixtures.databases import opened
from fixtures.red_to_green import wanted
from fixtures.still_hub import StillHub
from upright.store.address import Address

__all__ = ["hub", "wanted"]


@asynccontextmanager
async def open_hub(where: Address) -> AsyncIterator[StillHub]:
    """Give a hub; at the end of every scenario the oracle of B11.8 must find nothing."""
    hub = StillHub(await opened(where), where)
    try:
        yield hub
        found = await hub.asleep_for_ever()
    finally:
        await hub.store.close()
    assert found == []


@pytest.fixture(autouse=True)
async def hub(make_address: Callable[[], Address]) -> AsyncIterator[StillHub]:
    async with open_hub(make_address()) as hub:
        yield hub
