"""Replay on a real database: what today's rules would say, without any effect; and once more."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from fixtures.still_hub import ANN, EVE, RULES, StillHub, trigger
from upright.core.gate import Rule, Rules, Verdict
from upright.core.trigger import Disposition
from upright.store import intake, oracle, replay, schema
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.tables import DELIVERY, SESSION, TRIGGER


def without_ann() -> Rules:
    """Return rules under which what Ann does is ignored."""
    ignore = Rule(name="not ann", verdict=Verdict.IGNORE, actors=("ann",))
    return replace(RULES, version="8", rules=(ignore, *RULES.rules))


async def everything(hub: StillHub) -> list[list[tuple[object, ...]]]:
    def read(c: sa.Connection) -> list[list[tuple[object, ...]]]:
        tables = schema.METADATA.sorted_tables
        return [sorted(map(tuple, c.execute(sa.select(table))), key=str) for table in tables]

    return await hub.see(read)


@pytest.mark.clause("B3.4")
@pytest.mark.feature("common.replay")
async def test_a_replay_says_what_would_change_and_changes_nothing(hub: StillHub) -> None:
    red = await hub.one(trigger("ci.failed"))
    hers = await hub.one(trigger("issue.opened", by=ANN, thread="issue:1"))
    before = await everything(hub)
    policy = replace(hub.policy, rules=without_ann())
    found = await hub.see(lambda c: replay.replay(c, policy, limit=99))
    assert [(one.id, one.changes) for one in found] == [(hers.id, True), (red.id, False)]
    assert (found[0].version, found[0].now_version) == ("7", "8")
    assert (found[0].now_verdict, found[0].now_rule) == ("ignore", "not ann")
    assert await everything(hub) == before
    await hub.do(lambda u: u.c.execute(SESSION.update().values(ready_at_ms=None)).close())
    await hub.do(lambda u: u.c.execute(DELIVERY.delete()).close())


async def test_a_replay_takes_one_trigger_or_those_of_a_span(hub: StillHub) -> None:
    first = await hub.one(trigger("star", by=EVE, thread="a"))
    hub.clock.go_on(3600)
    since_ms = int(hub.clock.now().timestamp() * 1000)
    second = await hub.one(trigger("star", by=EVE, thread="b"))
    one = await hub.see(lambda c: replay.replay(c, hub.policy, trigger=first.id, limit=9))
    span = await hub.see(lambda c: replay.replay(c, hub.policy, since_ms=since_ms, limit=9))
    assert [each.id for each in one] == [first.id]
    assert [each.id for each in span] == [second.id]


async def held(hub: StillHub) -> str:
    hub.policy = replace(hub.policy, routes=False)
    accepted = await hub.one(trigger("ci.failed"))
    assert accepted.disposition is Disposition.HELD
    return accepted.id


async def test_a_held_trigger_is_offered_to_the_router_once(hub: StillHub) -> None:
    wanted = await held(hub)
    policy = replace(hub.policy, routes=True)
    router = await hub.do(lambda u: replay.again(u, policy, wanted))
    assert [one.id for one in await hub.see(lambda c: intake.unread(c, router))] == [wanted]
    assert [claim.session for claim in await hub.claim()] == [router]
    row = await hub.row(TRIGGER)
    assert (row["disposition"], row["reason"][:27]) == ("woke", "offered again by the operat")
    with pytest.raises(NotNowError, match="it is woke; only what is held"):
        await hub.do(lambda u: replay.again(u, policy, wanted))
    assert await hub.see(oracle.unheard) == []


async def test_without_a_model_nobody_is_offered_anything(hub: StillHub) -> None:
    wanted = await held(hub)
    with pytest.raises(NotNowError, match="no model is configured"):
        await hub.do(lambda u: replay.again(u, hub.policy, wanted))
    assert (await hub.row(TRIGGER))["disposition"] == "held"


async def test_what_is_not_there_is_not_offered(hub: StillHub) -> None:
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: replay.again(u, hub.policy, "tr_none"))
