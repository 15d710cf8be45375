"""The demo as CI runs it: green, sabotaged, interrupted; and nothing is left of it."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from pathlib import Path
from typing import Final

import pytest

from fixtures.demo_process import ENDS_S, demo, ended, files, left

pytestmark = pytest.mark.timeout(80)  # it may take 60 s by its own word, on a busy machine
STEPS: Final = ("set_up", "webhook", "opened", "first_command", "pushed", "success", "completed")


@pytest.mark.case("OC/21913")
@pytest.mark.parametrize("seed", [7, 21])
async def test_a_red_run_turns_green_and_every_check_holds(tmp_path: Path, seed: int) -> None:
    async with demo(tmp_path, "--seed", str(seed)) as process:
        ran = await ended(process)
    assert (ran.code, ran.result["ok"], ran.result["failures"]) == (0, True, []), ran.said
    assert len(ran.result["checks"]) >= 9
    assert ran.failed == set()
    times = [ran.result["times"][step] for step in STEPS]
    assert times == sorted(times)
    assert ran.result["times"]["whole"] < 60
    assert f"seed {seed}" in ran.said
    assert left(tmp_path) == []
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("sabotage", "failed"),
    [
        ("run-does-nothing", {"one fix commit is on the branch", "the tests are green after it"}),
        ("stays-red", {"one fix commit is on the branch", "the tests are green after it"}),
        (
            "success-dropped",
            {"the success reached the worker", "the work item is completed with evidence"},
        ),
    ],
)
async def test_a_sabotaged_run_fails_and_names_the_check(
    tmp_path: Path, sabotage: str, failed: set[str]
) -> None:
    async with demo(tmp_path, "--seed", "21", "--sabotage", sabotage) as process:
        ran = await ended(process)
    assert (ran.code, ran.result["ok"]) == (1, False)
    assert failed <= ran.failed
    assert failed <= set(ran.result["failures"])
    assert "the tests were red before" not in ran.failed
    for name in failed:
        assert f"FAIL {name}" in ran.said
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGTERM, "asks to be paired"),
        (signal.SIGTERM, "$ git ls-files"),
        (signal.SIGINT, "a worker is on it"),
    ],
    ids=["TERM-in-set-up", "TERM-while-tests-run", "INT-at-work"],
)
async def test_an_interrupted_run_ends_everything_and_cleans_up(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    async with demo(tmp_path, "--seed", "21") as process:
        said = await _until_said(process, moment)
        assert left(tmp_path) != []
        process.send_signal(number)
        ran = await ended(process, said)
    assert (ran.code, ran.result["ok"]) == (1, False)
    assert ran.result["failures"] == ["INTERRUPTED"], ran.said
    assert left(tmp_path) == []
    assert files(tmp_path) == []


async def _until_said(process: Process, words: str) -> str:
    """Read what the demo says until it says *words*."""
    assert process.stderr is not None
    said = ""
    async with asyncio.timeout(ENDS_S):
        while words not in said:
            line = await process.stderr.readline()
            assert line, said
            said += line.decode()
    return said
