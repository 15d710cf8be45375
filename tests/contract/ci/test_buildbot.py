"""A real Buildbot tells of its builds, through the real door into a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.buildbot import mastering
from fixtures.ci_hook import SECRET, settings
from fixtures.eventually import eventually_awaited
from fixtures.still_hub import StillHub
from fixtures.through_hub import through
from upright.store import intake
from upright.store.tables import TRIGGER
from upright.testing.context import MemoryContext
from upright_ci.hook import HookConnector
from upright_ci.settings import Provider

SHA = "a" * 40


@pytest.mark.feature("ci.buildbot")
@pytest.mark.timeout(150)  # a master starts, and builds three times
@pytest.mark.clause("B2.1")
async def test_a_build_that_fails_and_one_that_fixes_it_are_told_once_with_the_reason(
    small_hub: StillHub, tmp_path: Path
) -> None:
    connector = HookConnector("gh", settings(provider=Provider.BUILDBOT))
    await connector.start(MemoryContext(secrets={"env:S": SECRET}))
    async with (
        through(small_hub, connector) as door,
        mastering(tmp_path, hook=door.url, secret=SECRET) as buildbot,
    ):

        async def told(*kinds: str) -> bool:
            return await door.kinds() == list(kinds)

        await buildbot.force(x="0", branch="fix", sha=SHA)
        red = ("ci.started", "ci.failed")
        await eventually_awaited(lambda: told(*red), within_s=60, every_s=0.1)
        await buildbot.force(x="1", branch="fix", sha="b" * 40)
        green = (*red, "ci.started", "ci.fixed")
        await eventually_awaited(lambda: told(*green), within_s=60, every_s=0.1)

    (row,) = await small_hub.rows(TRIGGER, kind="ci.failed")
    stored = await small_hub.see(lambda c: intake.read(c, str(row["id"])))
    assert stored is not None
    facts, code = dict(stored.trigger.context.facts), stored.trigger.context.code
    assert (facts["check"], facts["repository"], facts["branch"]) == ("unit", "acme/app", "fix")
    assert (facts["sha"], facts["failed"]) == (SHA, "tests")
    assert facts["error"] == "AssertionError: expected 1, got 0"
    assert code is not None
    assert code.urls == ("https://git.example.org/acme/app.git",)
    assert not code.fork
