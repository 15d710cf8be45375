"""A success after a failure of the same check is told as fixed, whatever was restarted between."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from fixtures.still_hub import START, StillHub, trigger
from upright.api import Trigger
from upright.store import intake
from upright.store.tables import TRIGGER


def run(
    kind: str, *, at_min: int, check: str = "unit", sha: str = "", thread: str = "b"
) -> Trigger:
    facts = (("check", check), ("sha", sha or str(at_min)))
    made = trigger(f"ci.{kind}", thread=thread, facts=facts)
    return replace(made, occurred_at=START + timedelta(minutes=at_min))


async def kinds(hub: StillHub) -> list[str]:
    return [row["kind"].removeprefix("ci.") for row in await hub.rows(TRIGGER)]


async def test_green_after_red_is_fixed_over_a_restart(hub: StillHub) -> None:
    await hub.accept(run("failed", at_min=0), run("cancelled", at_min=1))
    await hub.reopen()
    await hub.accept(run("succeeded", at_min=2), run("succeeded", at_min=3))
    assert await kinds(hub) == ["failed", "cancelled", "fixed", "succeeded"]


async def test_red_and_green_that_come_together_are_told_so_too(hub: StillHub) -> None:
    await hub.accept(run("failed", at_min=0), run("succeeded", at_min=1), run("failed", at_min=2))
    await hub.accept(run("succeeded", at_min=3))
    assert await kinds(hub) == ["failed", "fixed", "failed", "fixed"]


@pytest.mark.parametrize("timed", [True, False])
async def test_of_runs_at_one_moment_the_later_arrival_is_the_last(
    hub: StillHub, *, timed: bool
) -> None:
    ends = [run(kind, at_min=0) for kind in ("failed", "succeeded", "succeeded", "failed")]
    for one in [*ends, run("succeeded", at_min=0)]:
        await hub.accept(one if timed else replace(one, occurred_at=None))
    assert await kinds(hub) == ["failed", "fixed", "succeeded", "failed", "fixed"]


async def test_another_check_and_another_branch_fix_nothing(hub: StillHub) -> None:
    await hub.accept(run("failed", at_min=0))
    await hub.accept(run("succeeded", at_min=1, check="lint"))
    await hub.accept(run("succeeded", at_min=2, thread="c"))
    assert await kinds(hub) == ["failed", "succeeded", "succeeded"]


async def test_a_success_from_before_the_failure_fixes_nothing(hub: StillHub) -> None:
    await hub.accept(run("failed", at_min=5))
    await hub.accept(run("succeeded", at_min=1))
    assert await kinds(hub) == ["failed", "succeeded"]


@pytest.mark.parametrize(("sha", "told"), [("a", "yes"), ("b", None)])
async def test_green_on_the_very_same_commit_says_so(
    hub: StillHub, sha: str, told: str | None
) -> None:
    await hub.accept(run("failed", at_min=0, sha="a"))
    (fixed,) = await hub.accept(run("succeeded", at_min=1, sha=sha))
    stored = await hub.see(lambda c: intake.read(c, fixed.id))
    assert stored is not None
    assert dict(stored.trigger.context.facts).get("same_commit") == told
