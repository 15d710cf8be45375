"""Ends of all kinds, in the middle of work: SIGTERM, kill -9, revocation; then it goes on, once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from fixtures.pulls import SLOW, Pull, open_pull
from fixtures.spine import Spine, raised

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # a whole story, with processes that are stopped and started again; the first sets up, too
    pytest.mark.timeout(90),
]
DRAINS_S: Final = 10.0
CUT_S: Final = 1.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spine]:
    async with raised(tmp_path_factory.mktemp("spine")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def spine(whole: Spine) -> Spine:
    await whole.mend()
    return whole


@pytest.mark.clause("B8.6", "B11.7", "B15.1")
async def test_sigterm_while_a_command_runs_ends_soon_and_the_work_goes_on(spine: Spine) -> None:
    pull = await open_pull(spine, 47, more=SLOW)
    await pull.goes_red()
    await pull.job(word="unittest", state="running")
    before = asyncio.get_running_loop().time()
    assert await spine.stop("hub") == 0
    assert asyncio.get_running_loop().time() - before < DRAINS_S
    await spine.start_hub()
    await pull.comes_green()


@pytest.mark.clause("B8.6")
async def test_sigterm_while_the_model_is_silent_ends_soon_and_its_turn_is_done_again(
    spine: Spine,
) -> None:
    silence = {"kind": "silence", "agent": "worker", "after_chunks": 1, "seconds": 60}
    await spine.model.post("/_scripted/faults", silence)
    pull = await open_pull(spine, 73)
    await pull.goes_red()

    async def silent() -> bool:
        stats = await spine.model.get("/_scripted/stats")
        return "silence" in stats["faults"]

    await spine.until(silent)
    before = asyncio.get_running_loop().time()
    assert await spine.stop("hub") == 0
    assert asyncio.get_running_loop().time() - before < DRAINS_S
    await spine.start_hub()
    await pull.comes_green()


async def _after_the_webhook(pull: Pull) -> None:
    """Kill as soon as the sandbox has the answer: nothing of the story has been waited for."""


async def _while_a_command_runs(pull: Pull) -> None:
    await pull.job(word="unittest", state="running")


async def _after_the_push(pull: Pull) -> None:
    await pull.spine.until(pull.is_pushed)


async def _after_the_comment(pull: Pull) -> None:
    await pull.spine.until(pull.comments)


@pytest.mark.clause("B2.1", "B5.2", "B8.6", "B15.2", "E7.1")
@pytest.mark.parametrize(
    ("seed", "moment"),
    [
        (21, _after_the_webhook),
        (22, _while_a_command_runs),
        (23, _after_the_push),
        (24, _after_the_comment),
    ],
)
async def test_a_hub_that_is_killed_goes_on_and_does_nothing_twice(
    spine: Spine, seed: int, moment: Callable[[Pull], Awaitable[None]]
) -> None:
    pull = await open_pull(spine, seed, more=SLOW if moment is _while_a_command_runs else None)
    await pull.goes_red()
    await moment(pull)
    await spine.kill("hub")
    await spine.start_hub()
    await pull.comes_green()
    goals = [item["goal"] for item in await spine.hub.get("/v1/work")]
    assert sum(pull.project.branch in goal for goal in goals) == 1
    assert await spine.hub.get("/v1/stalled") == []


@pytest.mark.clause("B10.2", "E5.2", "E7.6")
async def test_a_command_outlives_a_killed_daemon_and_its_end_is_told(spine: Spine) -> None:
    pull = await open_pull(spine, 48, more=SLOW)
    await pull.goes_red()
    job = await pull.job(word="unittest", state="running")
    await spine.kill("execd")
    await spine.start_execd()
    shown = await pull.job(word="unittest", state="failed")
    assert (shown["id"], shown["outcome"], shown["code"]) == (job["id"], "exited", 1)
    await pull.comes_green()


@pytest.mark.clause("B8.3", "B8.6", "B11.8", "E7.7")
async def test_a_command_whose_guardian_was_killed_is_lost_and_a_person_is_asked(
    spine: Spine,
) -> None:
    pull = await open_pull(spine, 50, more=SLOW)
    await pull.goes_red()
    job = await pull.job(word="unittest", state="running")
    home = Path(spine.stage.env["UPRIGHT_EXECD_HOME"])
    shim = await asyncio.to_thread(_shim, home, job["id"])
    await spine.kill("execd")
    os.kill(shim, signal.SIGKILL)
    await spine.start_execd()
    lost = await pull.job(word="unittest", state="lost")
    assert (lost["id"], lost["started"]) == (job["id"], "yes")
    item = await pull.reaches("waiting_operator")
    (question,) = item["questions"]
    assert "outcome lost" in question["prompt"]
    assert (await spine.upright("answer", question["id"], "go on")).code == 0
    await pull.comes_green()


def _shim(home: Path, job: str) -> int:
    """Return the process that guards a command: the parent of what it runs."""
    running = (home / "state/commands/open" / job / "running").read_text(encoding="ascii")
    pid = dict(line.split("=", 1) for line in running.splitlines())["pid"]
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    return int(stat.rpartition(")")[2].split()[1])


async def test_a_second_hub_on_the_same_database_is_refused_by_name(spine: Spine) -> None:
    said = await spine.upright("serve", "--port", "0")
    assert said.code == 1
    assert f"is in use by process {spine.pid('hub')}" in said.err
    assert len(said.err.strip().splitlines()) == 1


@pytest.mark.clause("B14.5", "E1.5")
async def test_revoking_a_device_cuts_its_link_and_ends_its_commands(spine: Spine) -> None:
    pull = await open_pull(spine, 49, more=SLOW)
    await pull.goes_red()
    await pull.job(word="unittest", state="running")
    (device,) = [one for one in await spine.hub.get("/v1/devices") if one["online"]]
    loop, execd = asyncio.get_running_loop(), spine.children.named("execd")
    before = loop.time()
    await spine.hub.post(f"/v1/devices/{device['id']}/revoke", {})

    async def offline() -> bool:
        return not await spine.online()

    await spine.until(offline)
    assert loop.time() - before < CUT_S
    async with asyncio.timeout(10):
        assert await execd.process.wait() == 4
    spine.children.forget(execd)
    await spine.pair()
