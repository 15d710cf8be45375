"""Killed anywhere, it still ends right: the kill bench as CI runs it, and its own end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from fixtures.spine import clean_environment
from upright.cli.bench import strays

KILLS: Final = 30
ENDS_S: Final = 290.0

# thirty kills and as many restarts: about 90 s on two free cores, more where they are shared
pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def bench(folder: Path, *words: str) -> AsyncIterator[Process]:
    """Start the bench with *folder* for its temporary files."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upright", "bench", "kill", *words),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**clean_environment(), "TMPDIR": str(folder)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


@pytest.mark.clause("B2.1", "B5.2", "B8.5", "B8.6", "B10.2", "B11.8", "B15.1", "B15.2")
async def test_thirty_kills_lose_nothing_double_nothing_and_leave_nothing_stuck(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, "--kills", str(KILLS), "--seed", "30", "--json") as process:
        async with asyncio.timeout(ENDS_S):
            out, err = await process.communicate()
    told = json.loads(out)
    assert told["failures"] == [], err.decode()
    assert process.returncode == 0
    assert (told["lost"], told["doubled"], told["stuck"]) == (0, 0, 0)
    assert told["kills"] == KILLS <= told["landed"]
    assert told["acknowledged"] >= 100
    assert told["inside_turn"] >= 5
    assert told["between_receipt_and_answer"] >= 2
    counts = [
        n for stops in told["by_stop"].values() for sides in stops.values() for n in sides.values()
    ]
    assert sum(counts) == told["landed"]
    assert strays.strays(tmp_path) == {}
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_an_interrupted_run_ends_every_process(tmp_path: Path) -> None:
    async with bench(tmp_path, "--kills", "500", "--json") as process:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while b"device is paired" not in await process.stderr.readline():
                assert process.returncode is None
        assert strays.strays(tmp_path) != {}
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
    assert process.returncode == 1
    assert json.loads(out)["failures"][-1] == "INTERRUPTED"
    assert strays.strays(tmp_path) == {}
