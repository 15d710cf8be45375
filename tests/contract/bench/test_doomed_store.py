"""A doomed store, in a process of its own: which side of the commit a kill is on."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from upright.cli.bench.doom import Doom, Files, marks, write_dooms
from upright.cli.bench.stops import Place, Side, Victim
from upright.store import schema
from upright.store.database import Store
from upright.store.tables import EVENT

ENDS_S: Final = 20
PROGRAM: Final = """
import asyncio, sys
from pathlib import Path
from upright.cli.bench.doom import Fate, Files
from upright.cli.bench.doomed import DoomedStore
from upright.store.database import Store
from upright.store.events import About, record
from upright.store.unit import Unit

async def main(folder):
    inner = await asyncio.to_thread(Store.open, folder / "hub.db")
    store = DoomedStore(inner, Fate(Files(folder=folder)))
    for stop in ("tool.ran", "command.queued"):
        await store.write(lambda c: record(Unit(c, 1, str), stop, About()))
        print(stop, flush=True)
    await store.close()

asyncio.run(main(Path(sys.argv[1])))
"""


async def _run(folder: Path) -> tuple[int | None, list[str], list[str]]:
    """Run the program; return its code, which stops it was told of, and which are stored."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM, str(folder)), stdout=PIPE
    )
    async with asyncio.timeout(ENDS_S):
        out, _ = await process.communicate()
    store = await asyncio.to_thread(Store.open, folder / "hub.db")
    stored = await store.read(lambda c: list(c.scalars(sa.select(EVENT.c.stop))))
    await store.close()
    return process.returncode, out.decode().split(), stored


@pytest.fixture
def files(tmp_path: Path) -> Files:
    schema.create(tmp_path / "hub.db")
    return Files(folder=tmp_path)


@pytest.mark.parametrize(
    ("side", "stored"), [(Side.BEFORE, ["tool.ran"]), (Side.AFTER, ["tool.ran", "command.queued"])]
)
async def test_a_kill_lands_inside_the_transaction_or_behind_the_commit_and_nobody_is_told(
    files: Files, side: Side, stored: list[str]
) -> None:
    place = Place(Victim.HUB, "command.queued", side)
    await asyncio.to_thread(write_dooms, files, [Doom(place=place)])
    assert await _run(files.folder) == (-signal.SIGKILL, ["tool.ran"], stored)
    assert [mark.place for mark in await asyncio.to_thread(marks, files)] == [place]


async def test_without_a_doom_it_is_a_store_like_any_other(files: Files) -> None:
    both = ["tool.ran", "command.queued"]
    assert await _run(files.folder) == (0, both, both)
    assert await asyncio.to_thread(marks, files) == []
