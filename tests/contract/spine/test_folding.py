"""Folding on a real database: a storm costs one wake a window, and each trigger is told (B2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pytest

from fixtures.still_hub import ANN, BOSS, CI, START_MS, StillHub, trigger
from upright.agent import settle, steps
from upright.agent.state import Turn
from upright.api import Address, Trigger
from upright.core.gate import Rule, Verdict
from upright.core.turn import CallModel, Ending, Limits, Rest, TakeInbox, next_action
from upright.core.work import Blocked, WorkItem
from upright.engine.embedded import recover
from upright.store import deadlines, intake, requests, sessions, work
from upright.store.sessions import Claim
from upright.store.tables import DELIVERY, SESSION, TURN
from upright.store.unit import Unit

QUIET_S: Final = 2.0
MOST_S: Final = 30.0


def news(thread: str = "pr:7") -> Trigger:
    """Make a trigger that presses nobody."""
    return trigger("ci.passed", by=CI, thread=thread)


async def follower(hub: StillHub, thread: str = "pr:7") -> WorkItem:
    """Open an item on a thread, and let its worker sleep."""
    item = await hub.opened(trigger(thread=thread))
    await hub.asleep(item)
    return item


async def ready_ms(hub: StillHub, item: WorkItem) -> int | None:
    found: int | None = (await hub.row(SESSION, id=item.session))["ready_at_ms"]
    return found


@dataclass
class Taken:
    """What turns took: by session the batches, each a list of triggers."""

    batches: dict[str, list[list[str]]] = field(default_factory=dict)

    async def turns(self, hub: StillHub) -> int:
        """Let each session that is ready take its inbox and rest; return how many did."""
        claims = await hub.claim()
        for claim in claims:
            batch = await hub.do(partial(_take, lease=claim))
            self.batches.setdefault(claim.session, []).append(batch)
        return len(claims)


def _take(u: Unit, lease: Claim) -> list[str]:
    found = intake.unread(u.c, lease.session)
    intake.taken(u.c, lease.session, found, 1)
    sessions.finish(u, lease, retry_at_ms=None, end=False)
    return [one.id for one in found]


# ------------------------------------------------------------------ the window
@pytest.mark.clause("B2.5")
async def test_the_first_wakes_at_once_and_what_follows_is_one_later_wake(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    first = await hub.one(news())
    assert await taken.turns(hub) == 1
    later = []
    for _ in range(5):
        hub.clock.go_on(0.5)
        later.append((await hub.one(news())).id)
        assert await taken.turns(hub) == 0
    hub.clock.go_on(QUIET_S)
    assert await taken.turns(hub) == 1
    assert taken.batches[item.session] == [[first.id], later]


@pytest.mark.clause("B2.5", "B11.7")
async def test_what_was_folded_is_due_at_its_time_and_not_before(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    await hub.one(news())
    await taken.turns(hub)
    hub.clock.go_on(1.0)
    folded = await hub.one(news())
    assert (folded.woke, folded.folded, folded.sooner) == ((item.session,),) * 3
    assert await hub.see(sessions.next_ready_ms) == START_MS + 3_000
    hub.clock.go_on(1.999)
    assert await taken.turns(hub) == 0
    hub.clock.go_on(0.001)
    assert await taken.turns(hub) == 1


@pytest.mark.clause("B2.5")
async def test_a_steady_stream_is_told_at_the_windows_greatest_age(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    times = []
    for tick in range(140):  # 70 seconds
        await hub.one(news())
        if await taken.turns(hub):
            times.append(tick / 2)
        hub.clock.go_on(0.5)
    assert times == [0.0, MOST_S, 2 * MOST_S]
    assert sum(len(batch) for batch in taken.batches[item.session]) == 121


@pytest.mark.clause("B2.5")
async def test_a_window_survives_a_kill_inside_it(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    await hub.one(news())
    await taken.turns(hub)
    folded = await hub.one(news())
    await hub.reopen()
    await hub.do(recover)
    hub.clock.go_on(1.0)
    later = await hub.one(news())
    assert later.folded == (item.session,)
    assert await taken.turns(hub) == 0
    hub.clock.go_on(QUIET_S)
    assert await taken.turns(hub) == 1
    assert taken.batches[item.session][-1] == [folded.id, later.id]


@pytest.mark.clause("B2.5")
@pytest.mark.parametrize("how", ["operator", "explicit", "urgent"])
async def test_what_presses_wakes_at_once_opens_no_window_and_takes_along_what_was_folded(
    hub: StillHub, how: str
) -> None:
    item, taken = await follower(hub), Taken()
    rule = Rule(name="now", verdict=Verdict.CANDIDATE, kinds=("alarm",), urgent=True)
    rules = replace(hub.policy.rules, rules=(rule, *hub.policy.rules.rules))
    hub.policy = replace(hub.policy, rules=rules)
    presses = {
        "operator": trigger("note", by=BOSS),
        "explicit": trigger("note", by=ANN, address=Address.MENTION),
        "urgent": trigger("alarm", by=CI),
    }[how]
    alone = await hub.one(replace(presses, dedupe=("alone",)))
    assert await taken.turns(hub) == 1
    first = await hub.one(news())  # no window is open: it wakes at once
    assert await taken.turns(hub) == 1
    folded = await hub.one(news())
    assert await taken.turns(hub) == 0
    pressing = await hub.one(presses)
    assert await taken.turns(hub) == 1
    assert taken.batches[item.session] == [[alone.id], [first.id], [folded.id, pressing.id]]
    hub.clock.go_on(QUIET_S)
    assert await taken.turns(hub) == 0  # no wake without a new fact


# ------------------------------------------------------------------ a turn under way
async def running(hub: StillHub, item: WorkItem) -> Turn:
    """Begin a turn that has taken its inbox, and let the model have spoken once."""
    (lease,) = await hub.claim()
    turn = await hub.do(lambda u: steps.begin(u, lease))
    await hub.do(lambda u: steps.take_inbox(u, turn))
    turn.steps = 1
    assert turn.claim.session == item.session
    return turn


@pytest.mark.clause("B2.5", "B8.4")
async def test_a_turn_is_not_prolonged_by_what_was_folded_and_its_session_is_ready_when_due(
    hub: StillHub,
) -> None:
    item = await follower(hub)
    await hub.one(news())
    turn = await running(hub, item)
    await hub.one(news())
    view = await hub.see(lambda c: steps.look(c, turn))
    assert (view.inbox, view.folded) == (0, 1)
    await hub.do(lambda u: settle.rest(u, turn, Ending.REST))
    assert await ready_ms(hub, item) == START_MS + 2_001


@pytest.mark.clause("B2.5", "B8.4")
async def test_a_turn_that_goes_on_anyway_takes_along_what_was_folded(hub: StillHub) -> None:
    item = await follower(hub)
    await hub.one(news())
    turn = await running(hub, item)
    await hub.one(news())
    view = await hub.see(lambda c: steps.look(c, turn))
    assert next_action(view, Limits()) == TakeInbox()
    await hub.do(lambda u: steps.take_inbox(u, turn))
    view = await hub.see(lambda c: steps.look(c, turn))
    assert next_action(view, Limits()) == CallModel()
    await hub.do(lambda u: settle.rest(u, turn, Ending.REST))
    assert await ready_ms(hub, item) is None


@pytest.mark.clause("B2.5")
@pytest.mark.case("PR/1446")
async def test_a_turn_that_dies_with_folded_triggers_is_taken_up_at_once(hub: StillHub) -> None:
    item = await follower(hub)
    await hub.one(news())
    await running(hub, item)
    await hub.one(news())
    await hub.do(recover)
    turn = await hub.do(lambda u: steps.begin(u, sessions.claim(u.c, u.now_ms, u.now_ms, 1)[0]))
    view = await hub.see(lambda c: steps.look(c, turn))
    assert view.inbox == 1  # it begins anyway, so it takes what is there


# ------------------------------------------------------------------ sessions that can't run
@pytest.mark.clause("B2.5")
async def test_a_try_after_a_failure_is_not_hurried_by_a_storm(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    await hub.one(news())
    (lease,) = await hub.claim()
    retry_ms = START_MS + 60_000

    def fail(u: Unit) -> None:
        sessions.update(u.c, lease, failures=1)
        sessions.finish(u, lease, retry_at_ms=retry_ms, end=False)

    await hub.do(fail)
    for _ in range(5):
        await hub.one(news())
        hub.clock.go_on(1.0)
    assert await ready_ms(hub, item) == retry_ms
    await hub.one(trigger("note", by=BOSS))
    assert await taken.turns(hub) == 1
    assert len(taken.batches[item.session][0]) == 7


@pytest.mark.clause("B2.5", "B11.2")
async def test_a_blocked_item_is_not_woken_at_the_end_of_a_window(hub: StillHub) -> None:
    item, taken = await follower(hub), Taken()
    await hub.one(news())
    await taken.turns(hub)
    await hub.one(news())

    def block(u: Unit) -> None:
        requests.ask(u, requests.Asking(prompt="?", work=item.id, session=item.session))
        work.move(u, work.read(u.c, item.id), Blocked(), reason="?")
        sessions.park(u.c, item.session)

    await hub.do(block)
    hub.clock.go_on(1.0)
    await hub.one(news())
    hub.clock.go_on(MOST_S)
    assert await taken.turns(hub) == 0


# ------------------------------------------------------------------ storms
@pytest.mark.clause("B2.5")
async def test_a_storm_on_many_threads_costs_each_at_most_one_wake_a_window(
    hub: StillHub,
) -> None:
    """P3 in small, in virtual time: 500 triggers on 10 threads in 10 seconds."""
    threads = [f"pr:{n}" for n in range(10)]
    items = [await follower(hub, thread) for thread in threads]
    taken, sent = Taken(), Counter[str]()
    for n in range(500):
        item, thread = items[n % 10], threads[n % 10]
        (accepted,) = await hub.accept(news(thread))
        sent[item.session] += 1
        assert accepted.woke == (item.session,)
        if n % 10 == 9:
            await taken.turns(hub)
            hub.clock.go_on(0.2)
    hub.clock.go_on(QUIET_S)
    await taken.turns(hub)
    for item in items:
        batches = taken.batches[item.session]
        told = [one for batch in batches for one in batch]
        assert len(batches) == 2  # the leading edge, and the end of the one window
        assert len(told) == len(set(told)) == sent[item.session] == 50


@pytest.mark.clause("B2.2", "B2.5")
@pytest.mark.case("OC/58443")
async def test_one_event_fifty_times_over_transports_and_a_restart_is_one_turn(
    hub: StillHub,
) -> None:
    item, taken = await follower(hub), Taken()
    given = replace(news(), dedupe=("delivery:1", "comment:7:created"))
    by_road: Sequence[Trigger] = [
        given,
        replace(given, dedupe=("delivery:2", "comment:7:created")),
        replace(given, dedupe=("comment:7:created",)),
    ]
    first = await hub.one(given)
    turns = await taken.turns(hub)
    for n in range(50):
        again = await hub.one(by_road[n % 3])
        assert (again.id, again.duplicate, again.woke) == (first.id, True, ())
        turns += await taken.turns(hub)
        hub.clock.go_on(7 * 24 * 3600 if n == 40 else 1.0)
        if n == 25:
            await hub.reopen()
            await hub.do(recover)
    assert turns == 1
    assert len(await hub.rows(DELIVERY, session_id=item.session, wake=True)) == 2


@pytest.mark.clause("B2.5", "B16.3")
@pytest.mark.case("HO/2529")
async def test_no_wake_comes_without_a_new_fact(hub: StillHub) -> None:
    """From the field: 65 % of all wakes had nothing new."""
    item, taken = await follower(hub), Taken()
    for _ in range(20):
        await hub.one(news())
        await taken.turns(hub)
        hub.clock.go_on(0.7)
    for _ in range(100):
        await taken.turns(hub)
        hub.clock.go_on(1.0)
    assert all(batch for batch in taken.batches[item.session])
    assert await hub.rows(TURN) == []
    assert await hub.see(deadlines.next_ms) is not None


@pytest.mark.clause("B2.5")
async def test_an_unsettled_turn_takes_folded_news_before_it_is_nudged(hub: StillHub) -> None:
    item = await hub.opened(trigger())
    turn = await running(hub, item)
    await hub.one(news())
    await hub.one(news())
    await hub.do(lambda u: steps.take_inbox(u, turn))
    await hub.one(news())
    view = await hub.see(lambda c: steps.look(c, turn))
    spoken = replace(view, messages=view.messages[:1])
    assert next_action(spoken, Limits()) == TakeInbox()
    assert next_action(replace(spoken, settled=True), Limits()) == Rest(Ending.REST)
