"""A still hub for the webhook's door, on SQLite."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fixtures.databases import opened
from fixtures.still_hub import StillHub


@pytest.fixture
async def hub(tmp_path: Path, empty_file: Path) -> AsyncIterator[StillHub]:
    where = Path(shutil.copy(empty_file, tmp_path / "hub.db"))
    hub = StillHub(await opened(where), where)
    try:
        yield hub
    finally:
        await hub.store.close()
