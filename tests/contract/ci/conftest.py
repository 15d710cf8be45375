"""Still hubs, empty at first."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

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


@pytest.fixture
async def small_hub(tmp_path: Path, empty_file: Path) -> AsyncIterator[StillHub]:
    """A still hub on SQLite alone, for tests whose other side is slow."""
    where = Path(shutil.copy(empty_file, tmp_path / "hub.db"))
    hub = StillHub(await opened(where), where)
    yield hub
    await hub.store.close()
