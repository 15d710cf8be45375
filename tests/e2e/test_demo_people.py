"""The demo's second scene: mail, calendar and chat against real servers and a strict sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fixtures.demo_process import Ran, demo, ended, files, left
from fixtures.require import skip_or_fail

SERVERS: Final = Path(__file__).parents[2] / ".venv-servers"
WHOLE_S: Final = 150.0  # twelve processes start on a busy machine
STEPS: Final = ("completed", "asked", "answered", "invited", "drafted", "decided")
LEAVES: Final = {
    "one reply arrived by SMTP",
    "it is in the thread, and says that a program wrote it",
    "nothing was said twice",
    "the item of the invitation is completed",
}
pytestmark = pytest.mark.timeout(WHOLE_S + 20)


async def played(folder: Path, *words: str) -> Ran:
    if not (SERVERS / "bin" / "pymap").exists():
        skip_or_fail("pymap", "make .venv-servers/.installed")
    scene = ("--scene", "people", "--servers", str(SERVERS))
    async with demo(folder, *scene, *words) as process:
        return await ended(process, within_s=WHOLE_S)


def reached(ran: Ran) -> list[str]:
    return [step for step in STEPS if step in ran.result["times"]]


# 31 asks by the branch in a channel, 4 by the number in a direct message
@pytest.mark.clause("B14.2", "B14.3", "B15.1", "B5.1")
@pytest.mark.parametrize("seed", [31, 4])
async def test_a_conflict_is_declined_after_a_person_said_yes_and_a_question_is_answered(
    tmp_path: Path, seed: int
) -> None:
    ran = await played(tmp_path, "--seed", str(seed))
    assert (ran.code, ran.result["failures"]) == (0, []), ran.said
    assert len(ran.result["checks"]) >= 19
    assert reached(ran) == list(STEPS)
    times = [ran.result["times"][step] for step in STEPS]
    assert times == sorted(times)
    assert (left(tmp_path), files(tmp_path)) == ([], [])


async def test_without_a_conflict_nothing_is_declined_and_that_is_noticed(tmp_path: Path) -> None:
    ran = await played(tmp_path, "--seed", "31", "--sabotage", "no-conflict")
    assert ran.code == 1
    assert ran.failed == {"it declines for the conflict, and does not tell what it is"}
    assert "is free, and we will be there" in ran.said
    assert left(tmp_path) == []


@pytest.mark.clause("B14.3")
async def test_after_a_no_nothing_is_ever_sent(tmp_path: Path) -> None:
    ran = await played(tmp_path, "--seed", "4", "--sabotage", "denied")
    assert ran.code == 1
    assert ran.failed == LEAVES
    details = {check["name"]: check["detail"] for check in ran.result["checks"]}
    assert details["one reply arrived by SMTP"] == "0 mails in all"
    assert details["nothing was said twice"] == "github sent, post dead, slack sent"
    assert left(tmp_path) == []


async def test_without_the_servers_it_says_in_one_sentence_what_to_do(tmp_path: Path) -> None:
    scene = ("--scene", "people", "--servers", str(tmp_path / "nowhere"))
    async with demo(tmp_path, *scene) as process:
        ran = await ended(process)
    assert ran.code == 1
    (why,) = ran.result["failures"]
    assert "nowhere lacks pymap, aiosmtpd, radicale" in why
    assert "make .venv-servers/.installed" in why
    assert left(tmp_path) == []
