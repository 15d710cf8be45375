"""The door of intake: requests share a commit, and a bounded backlog slows them down (B2.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from fixtures.still_hub import SOURCE, StillHub, trigger
from upright.api import Trigger
from upright.compose.backlog import EVERY_S, Backlog
from upright.compose.growth import Growth
from upright.compose.intake import Intake, IntakeParts
from upright.core.retention import Keep
from upright.core.work import WorkItem
from upright.engine.embedded import EmbeddedEngine, EngineLimits
from upright.engine.pruner import Pruner, PruneTimes
from upright.engine.signals import Signals
from upright.settings.rules import write_rules
from upright.store import inbox, intake, rules, sources
from upright.store.policy import Base
from upright.store.tables import SOURCE as SOURCE_ROW
from upright.store.tables import TRIGGER
from upright.web.parts import BusyError


@dataclass(frozen=True)
class Door:
    """Intake with a bound on what waits."""

    intake: Intake
    backlog: Backlog


@asynccontextmanager
async def door(hub: StillHub, most: int = 1_000) -> AsyncIterator[Door]:
    units = hub.units
    backlog = Backlog(units, hub.clock, most=most)
    own = write_rules(hub.policy.rules.rules[:1])  # the built-in ones stand behind it
    await hub.do(lambda u: rules.take_over(u, own))
    parts = IntakeParts(
        units=units,
        engine=EmbeddedEngine(units, EngineLimits(), lambda: 0.5, Signals()),
        base=Base(
            modes=(), people=hub.policy.people, routes=hub.policy.routes, quiet=hub.policy.quiet
        ),
        growth=Growth(
            units=units,
            pruner=Pruner(units, Keep(), None, PruneTimes(every_s=3600.0)),
            spill=None,
            disk=None,
        ),
        backlog=backlog,
    )
    opened = Door(intake=Intake(parts), backlog=backlog)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(opened.intake.run())
        try:
            yield opened
        finally:
            task.cancel()


async def follower(hub: StillHub) -> WorkItem:
    item = await hub.opened(trigger())
    await hub.asleep(item)
    return item


async def read(hub: StillHub, item: WorkItem) -> None:
    """Let a worker read all that waits."""
    await hub.asleep(item)


async def test_what_other_sources_know_is_stored_with_what_comes_by_each_way(hub: StillHub) -> None:
    async def remarked(source: str, triggers: Sequence[Trigger]) -> list[Trigger]:
        facts = (("told_by", source),)
        return [replace(one, context=replace(one.context, facts=facts)) for one in triggers]

    async with door(hub) as opened:
        opened.intake.completes_by(remarked)
        (first,) = await opened.intake.accept("gh", [trigger(native="n1")])
        await opened.intake.emit("mail", [trigger(native="n2")], "c")
        await opened.intake.keep("ci", [trigger(native="n3")], "c", whole=True)
    ids = [str(row["id"]) for row in await hub.rows(TRIGGER)]
    found = await hub.see(lambda c: [intake.read(c, each) for each in ids])
    assert [dict(one.trigger.context.facts) for one in found if one] == [
        {"told_by": name} for name in ("gh", "mail", "ci")
    ]
    assert not first.duplicate


# ------------------------------------------------------------------ one commit for many
@pytest.mark.clause("B2.1")
async def test_requests_that_come_together_are_each_answered_and_one_that_is_bad_alone_fails(
    hub: StillHub,
) -> None:
    async with door(hub) as at, asyncio.TaskGroup() as group:
        asked = [
            group.create_task(at.intake.accept(SOURCE, [trigger("note", native=f"k{n % 20}")]))
            for n in range(40)
        ]
        bad = at.intake.accept(SOURCE, [trigger(text="\ud800")])
        with pytest.raises(ValueError, match="surrogates"):
            await bad
        answers = [(await one)[0] for one in asked]
    assert [one.duplicate for one in answers] == [False] * 20 + [True] * 20
    assert [one.id for one in answers[:20]] == [one.id for one in answers[20:]]
    assert len(await hub.rows(TRIGGER)) == 20


async def test_a_request_whose_caller_went_away_harms_nobody(hub: StillHub) -> None:
    async with door(hub) as at, asyncio.TaskGroup() as group:
        gone = group.create_task(at.intake.accept(SOURCE, [trigger("note", native="gone")]))
        stays = group.create_task(at.intake.accept(SOURCE, [trigger("note", native="stays")]))
        await asyncio.sleep(0)
        gone.cancel()
        assert not (await stays)[0].duplicate


@pytest.mark.clause("B2.3", "B1.6")
async def test_a_listing_has_a_cursor_of_its_own_and_its_end_is_noted(hub: StillHub) -> None:
    await hub.do(lambda u: sources.report(u, SOURCE, "github", state="ready", reason=""))
    async with door(hub) as at:
        await at.intake.emit(SOURCE, [trigger("note")], "uid 7")
        await at.intake.keep(SOURCE, [trigger("note")], "noon", whole=False)
        assert (await hub.row(SOURCE_ROW))["reconciled_at_ms"] is None
        await at.intake.keep(SOURCE, [], "one", whole=True)
    assert await hub.see(lambda c: sources.cursor(c, SOURCE)) == "uid 7"
    assert await hub.see(lambda c: sources.cursor(c, SOURCE, listed=True)) == "one"
    assert (await hub.row(SOURCE_ROW))["reconciled_at_ms"] is not None


# ------------------------------------------------------------------ the bound
@pytest.mark.clause("B2.6")
@pytest.mark.feature("common.backpressure")
async def test_over_the_bound_a_webhook_is_told_when_to_come_again_and_what_is_in_stays(
    hub: StillHub,
) -> None:
    item = await follower(hub)
    async with door(hub, most=3) as at:
        taken = [(await at.intake.accept(SOURCE, [trigger("note")]))[0] for _ in range(3)]
        with pytest.raises(BusyError) as refused:
            await at.intake.accept(SOURCE, [trigger("note")])
        assert 1.0 <= refused.value.retry_after_s <= 60.0
        unread = await hub.see(lambda c: intake.unread(c, item.session))
        assert [one.id for one in unread] == [one.id for one in taken]
        await read(hub, item)
        hub.clock.go_on(EVERY_S)
        assert not (await at.intake.accept(SOURCE, [trigger("note")]))[0].duplicate


@pytest.mark.clause("B2.6")
@pytest.mark.feature("common.backpressure")
async def test_over_the_bound_a_connectors_stream_waits_and_loses_nothing(hub: StillHub) -> None:
    item = await follower(hub)
    async with door(hub, most=1) as at, asyncio.TaskGroup() as group:
        await at.intake.emit(SOURCE, [trigger("note")], "1")
        waiting = group.create_task(at.intake.emit(SOURCE, [trigger("note")], "2"))
        assert await hub.see(lambda c: sources.cursor(c, SOURCE)) == "1"
        await read(hub, item)
        hub.clock.go_on(EVERY_S)
        await waiting
    assert await hub.see(lambda c: sources.cursor(c, SOURCE)) == "2"


@pytest.mark.clause("B2.6")
async def test_the_backlog_is_what_waits_for_sessions_that_are_to_run(hub: StillHub) -> None:
    item = await follower(hub)
    await hub.one(trigger("note"))
    await hub.one(trigger("ci.queued"))  # context
    await hub.one(trigger("note", thread="pr:8"))  # held
    assert await hub.see(inbox.backlog) == 1
    await read(hub, item)
    assert await hub.see(inbox.backlog) == 0


@pytest.mark.clause("B2.6")
async def test_the_gauge_shows_the_backlog(hub: StillHub) -> None:
    await follower(hub)
    await hub.one(trigger("note"))
    async with door(hub) as at:
        assert await at.backlog.gauges() == {"upright_backlog": 1.0}
