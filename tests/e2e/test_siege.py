"""Under siege it loses nothing: eight clients, many threads, each mode for a short while."""

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
from typing import Any, Final

import pytest

from fixtures.eventually import eventually
from fixtures.require import skip_or_fail
from fixtures.spine import clean_environment
from upright.cli.bench import strays
from upright.cli.bench.siege import disk

ENDS_S: Final = 200.0

# each about 20 s on two free cores, more where they are shared
pytestmark = pytest.mark.timeout(240)


@asynccontextmanager
async def siege(folder: Path, *words: str) -> AsyncIterator[Process]:
    """Start a siege with *folder* for its temporary files."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upright", "bench", "siege", "--seed", "4", *words),
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


async def besieged(folder: Path, *words: str) -> dict[str, Any]:
    """Run a siege to its end: no findings, nothing left running, no file left behind."""
    async with siege(folder, "--json", *words) as process:
        async with asyncio.timeout(ENDS_S):
            out, err = await process.communicate()
    assert out, err.decode()
    told: dict[str, Any] = json.loads(out)
    if told["skipped"]:
        skip_or_fail("tmpfs", told["skipped"])
    assert told["failures"] == [], err.decode()
    assert process.returncode == 0
    assert told["landed"] == told["kills"]
    assert told["acknowledged"] >= 5 * told["kills"]
    sums = ("lost", "doubled", "stuck", "broken")
    assert [told[name] for name in sums] == [0, 0, 0, 0]
    assert strays.strays(folder) == {}
    assert await asyncio.to_thread(os.listdir, folder) == []
    return told


@pytest.mark.clause("B2.1", "B5.2", "B6.2", "B8.5", "B8.6", "B11.7", "B11.8", "B15.1", "B15.2")
async def test_killed_at_random_under_load_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    told = await besieged(tmp_path, "--kills", "6")
    assert told["whole"] == told["kills"] + 1
    assert told["items"] > 0


@pytest.mark.clause("B8.5")
async def test_stopped_for_longer_than_its_leases_it_commits_nothing_twice(tmp_path: Path) -> None:
    await besieged(tmp_path, "--mode", "stop", "--kills", "2", "--hold", "3")


@pytest.mark.clause("B2.6")
async def test_with_the_disk_full_it_refuses_and_recovers_without_a_restart(
    tmp_path: Path,
) -> None:
    if why := disk.lacks():
        skip_or_fail("tmpfs", why)
    told = await besieged(tmp_path, "--mode", "full", "--kills", "2", "--hold", "3")
    assert "500" not in told["answers"]


@pytest.mark.clause("B2.1")
async def test_with_the_database_locked_by_another_it_waits_or_refuses(tmp_path: Path) -> None:
    await besieged(tmp_path, "--mode", "locked", "--kills", "2", "--hold", "7")


@pytest.mark.clause("B2.1", "B8.5")
@pytest.mark.case("DB/716")
async def test_with_postgresqls_backends_ended_it_loses_and_doubles_nothing(
    tmp_path: Path, postgres: str
) -> None:
    url = ("--database-url", postgres)
    told = await besieged(tmp_path, "--mode", "backend", "--kills", "2", "--hold", "2", *url)
    assert told["cut"] > 10


async def test_an_interrupted_siege_ends_every_process(tmp_path: Path) -> None:
    async with siege(tmp_path, "--kills", "500", "--json") as process:
        await eventually(lambda: list(tmp_path.glob("*/client-0.log")), within_s=60)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
    assert process.returncode == 1
    assert "INTERRUPTED" in json.loads(out)["failures"]
    assert strays.strays(tmp_path) == {}
