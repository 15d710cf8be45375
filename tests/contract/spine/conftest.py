"""A still hub for each test, over a copy of an empty database; nothing may sleep for ever."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fixtures.still_hub import StillHub, template
from upright.store.database import Store


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("spine"))


@asynccontextmanager
async def open_hub(path: Path, empty_file: Path) -> AsyncIterator[StillHub]:
    """Give a hub; at the end of every scenario the oracle of B11.8 must find nothing."""
    hub = StillHub(Store.open(Path(shutil.copy(empty_file, path))))
    yield hub
    found = await hub.asleep_for_ever()
    await hub.store.close()
    assert found == []


@pytest.fixture(autouse=True)
async def hub(tmp_path: Path, empty_file: Path) -> AsyncIterator[StillHub]:
    async with open_hub(tmp_path / "s.db", empty_file) as hub:
        yield hub


@pytest.fixture
async def other(tmp_path: Path, empty_file: Path) -> AsyncIterator[StillHub]:
    """Give a second hub, to compare with."""
    async with open_hub(tmp_path / "other.db", empty_file) as hub:
        yield hub
