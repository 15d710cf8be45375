"""Budgets over a real store: who is warned, what stops, and how it goes on (B13.1, B16)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from fixtures.agents import TEST, WAIT_CI, Agents, Say, ScriptedChat, call, few_steps, worker
from fixtures.metered import metered, metered_agents, metered_worker
from fixtures.still_hub import BOSS, SOURCE, START_MS, StillHub, trigger
from upright.agent.turn import AgentLimits
from upright.core.budget import DAY_MS, Key, Measure, Scope
from upright.core.transcript import Message, Role
from upright.core.turn import Limits
from upright.core.work import WorkState
from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    ModelHeldError,
    ModelUnavailableError,
    Reckoned,
    Usage,
)
from upright.store import budgets, costs, deadlines, people
from upright.store.costs import Facet
from upright.store.ledger import Cost, charge
from upright.store.tables import EVENT, LEDGER, REQUEST, SPENT, TURN, WAIT
from upright.store.unit import Unit

ANOTHER: Final = call("run", {"argv": ["make", "lint"]})
DAY: Final = Key(Scope.DAY)
A_CALL: Final = 11  # tokens, of the scripted chat
MIDNIGHT_MS: Final = (START_MS // DAY_MS + 1) * DAY_MS


async def cap(hub: StillHub, key: Key, amount: int, measure: Measure = Measure.TOKENS) -> None:
    await hub.do(lambda u: budgets.put(u, key, {measure: amount}, "ann"))


async def stops(hub: StillHub, stop: str) -> int:
    return len(await hub.rows(EVENT, stop=stop))


async def till_midnight(hub: StillHub) -> None:
    hub.clock.go_on((MIDNIGHT_MS - START_MS) / 1000)
    await hub.do(deadlines.fire_due)


# ------------------------------------------------------------------ the ledger
@pytest.mark.clause("B16.1")
async def test_each_call_and_job_counts_for_its_source_rule_agent_item_and_day(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    await agents.go()
    rows = await hub.rows(LEDGER)
    assert {row["kind"] for row in rows} == {"model", "job"}
    for row in rows:
        assert (row["source"], row["policy"], row["agent"]) == (SOURCE, "red", "developer")
        assert (row["session_id"], row["work_id"]) == (item.session, item.id)
    spent = {(row["scope"], row["name"]): row for row in await hub.rows(SPENT)}
    assert set(spent) == {
        ("day", ""),
        ("source", SOURCE),
        ("policy", "red"),
        ("agent", "developer"),
        ("item", item.id),
    }
    assert {row["tokens"] for row in spent.values()} == {2 * A_CALL}
    assert {row["steps"] for row in spent.values()} == {2}
    assert {row["unpriced"] for row in spent.values()} == {2}


@pytest.mark.clause("B16.1")
async def test_what_the_router_thinks_counts_for_the_source_that_it_thinks_of(
    hub: StillHub,
) -> None:
    await hub.one(trigger(thread="pr:9"))
    await Agents(hub, ScriptedChat(router=(Say("Noted."),))).go()
    (row,) = await hub.rows(LEDGER)
    assert (row["source"], row["policy"], row["agent"]) == (SOURCE, "red", "router")


@pytest.mark.clause("B16.1", "B16.2")
async def test_tries_in_vain_are_on_the_bill_and_counted_as_retries(hub: StillHub) -> None:
    agents, _ = await worker(hub, WAIT_CI)
    wasted = Reckoned(model="scripted", usage=Usage(input=7, output=2))
    agents.chat.fails = deque([ModelUnavailableError("cut", attempts=4, wasted=wasted)])
    await agents.go()
    hub.clock.go_on(60)
    await agents.go()
    (day,) = await hub.rows(SPENT, scope="day")
    assert (day["retries"], day["steps"], day["tokens"]) == (4, 1, 9 + A_CALL)
    (of_day,) = await hub.see(lambda c: costs.grouped(c, Facet.DAY))
    assert (of_day["calls"], of_day["retries"], of_day["tokens_input"]) == (1, 4, 17)


# ------------------------------------------------------------------ warned, stopped
@pytest.mark.clause("B16.2")
async def test_people_are_warned_once_at_80_percent_and_asked_once_at_the_end(
    hub: StillHub,
) -> None:
    agents, item = await metered_worker(hub, TEST, ANOTHER, TEST, WAIT_CI)
    await cap(hub, DAY, 40)
    await agents.go()
    assert len(agents.chat.requests) == 4  # 33 is more than 80 %, 44 is the end
    assert (await stops(hub, "budget.warned"), await stops(hub, "budget.stopped")) == (1, 1)
    (question,) = await hub.rows(REQUEST)
    assert "The budget of the day is used up" in question["prompt"]
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


@pytest.mark.clause("B16.2")
async def test_a_spent_budget_stops_at_a_safe_point_and_the_next_day_goes_on_by_itself(
    hub: StillHub,
) -> None:
    agents, item = await metered_worker(hub, TEST, TEST, WAIT_CI)
    await cap(hub, DAY, 2 * A_CALL)
    await agents.go()
    assert len(agents.chat.requests) == 2
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM
    (wait,) = await hub.rows(WAIT)
    assert (wait["deadline_ms"], wait["on_deadline"]) == (MIDNIGHT_MS, "look")
    assert "22 tokens of 22 tokens" in wait["why"]
    (turn,) = await hub.rows(TURN, session_id=item.session)
    assert turn["ending"] == "held"
    messages = (await agents.loaded(item.session)).messages
    assert messages[-1].role is Role.TOOL  # nothing that was begun is left open
    assert await agents.go() == 0
    await till_midnight(hub)
    await agents.go()
    assert len(agents.chat.requests) == 3
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert [row["state"] for row in await hub.rows(REQUEST)] == ["expired"]


@pytest.mark.clause("B16.2")
async def test_what_comes_to_a_held_item_is_taken_in_and_costs_no_call(hub: StillHub) -> None:
    agents, item = await metered_worker(hub, TEST, WAIT_CI)
    await cap(hub, DAY, A_CALL)
    await agents.go()
    for n in range(3):
        await hub.one(trigger("comment.created", by=BOSS, text=f"word {n}"))
        await agents.go()
    assert len(agents.chat.requests) == 1
    assert "word 2" in (await agents.loaded(item.session)).messages[-1].text
    assert len(await hub.rows(REQUEST)) == 1
    assert [row["state"] for row in await hub.rows(WAIT)] == ["open"]


@pytest.mark.clause("B16.2")
@pytest.mark.parametrize("how", ["raised", "granted", "cleared"])
async def test_a_person_lets_held_work_go_on_at_once(hub: StillHub, how: str) -> None:
    agents, item = await metered_worker(hub, TEST, ANOTHER, WAIT_CI)
    await cap(hub, DAY, 20)
    await agents.go()
    (question,) = await hub.rows(REQUEST)
    if how == "raised":
        await cap(hub, DAY, 100)
    elif how == "cleared":
        await hub.do(lambda u: budgets.remove(u, DAY, "ann"))
    else:
        await hub.do(lambda u: people.answer(u, question["id"], "yes", "ann"))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert await hub.rows(REQUEST, state="asked") == []


@pytest.mark.clause("B16.2")
async def test_a_no_leaves_work_held(hub: StillHub) -> None:
    agents, item = await metered_worker(hub, TEST, WAIT_CI)
    await cap(hub, DAY, A_CALL)
    await agents.go()
    (question,) = await hub.rows(REQUEST)
    await hub.do(lambda u: people.answer(u, question["id"], "No.", "ann"))
    assert await agents.go() == 0
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM


@pytest.mark.clause("B16.2")
async def test_the_router_is_held_too_and_looks_again_at_midnight(hub: StillHub) -> None:
    agents = metered_agents(hub, ScriptedChat(router=(Say("Noted."), Say("Noted, too."))))
    await cap(hub, DAY, A_CALL)
    await hub.one(trigger(thread="pr:9"))
    await agents.go()
    await hub.one(trigger(thread="pr:10"))
    await agents.go()
    assert len(agents.chat.requests) == 1
    await till_midnight(hub)
    await agents.go()
    assert len(agents.chat.requests) == 2


@pytest.mark.clause("B13.1", "B16.2")
@pytest.mark.parametrize("scope", [Scope.SOURCE, Scope.POLICY, Scope.AGENT, Scope.ITEM])
async def test_each_scope_stops_what_counts_in_it_and_nothing_else(
    hub: StillHub, scope: Scope
) -> None:
    agents, item = await metered_worker(hub, TEST, WAIT_CI)
    names = {
        Scope.SOURCE: SOURCE,
        Scope.POLICY: "red",
        Scope.AGENT: "developer",
        Scope.ITEM: str(item.id),
    }
    await cap(hub, Key(scope, names[scope]), A_CALL)
    await cap(hub, Key(scope, "another"), 1)
    await agents.go()
    assert len(agents.chat.requests) == 1
    (wait,) = await hub.rows(WAIT)
    assert names[scope] in wait["why"]
    if scope is Scope.ITEM:  # no new day renews it: a person does
        await till_midnight(hub)
        await agents.go()
        assert len(agents.chat.requests) == 1
        await cap(hub, Key(scope, names[scope]), 100)
        await agents.go()
    else:
        await till_midnight(hub)
        await agents.go()
    assert len(agents.chat.requests) == 2


@pytest.mark.clause("B13.1")
@pytest.mark.parametrize(
    ("measure", "amount"),
    [(Measure.TOKENS, 2), (Measure.STEPS, 1), (Measure.MILLIS, 10), (Measure.REPEATS, 1)],
)
async def test_each_measure_of_an_item_stops_it(
    hub: StillHub, measure: Measure, amount: int
) -> None:
    agents, item = await metered_worker(hub, TEST, TEST, TEST, WAIT_CI)
    await cap(hub, Key(Scope.ITEM), amount, measure)
    await agents.go()
    assert len(agents.chat.requests) == (2 if measure is Measure.REPEATS else 1)
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM


@pytest.mark.case("HE/23419")
@pytest.mark.clause("B13.1")
@pytest.mark.parametrize("measure", [Measure.RETRIES, Measure.USD_MICROS])
async def test_retries_and_money_stop_a_source(hub: StillHub, measure: Measure) -> None:
    agents, item = await metered_worker(hub, WAIT_CI)
    cost = Cost(kind="retry", session_id=item.session, tries=3, usd_micros=3)
    await hub.do(lambda u: charge(u, cost))
    await cap(hub, Key(Scope.SOURCE, SOURCE), 3, measure)
    await agents.go()
    assert agents.chat.requests == []
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM


# ------------------------------------------------------------------ one turn
@pytest.mark.clause("B13.1")
@pytest.mark.parametrize(
    ("measure", "amount", "calls"),
    [(Measure.TOKENS, 12, 2), (Measure.STEPS, 2, 2), (Measure.REPEATS, 1, 2)],
)
async def test_a_turn_ends_at_its_bound_with_the_reason_and_a_person_is_asked(
    hub: StillHub, measure: Measure, amount: int, calls: int
) -> None:
    limits = AgentLimits(turn=Limits(caps={measure: amount}), inline_wait_s=5.0)
    agents, item = await worker(hub, TEST, TEST, TEST, WAIT_CI, limits=limits)
    await agents.go()
    assert len(agents.chat.requests) == calls
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR
    (question,) = await hub.rows(REQUEST)
    assert "in one turn" in question["prompt"]
    (ended,) = await hub.rows(EVENT, stop="turn.ended")
    assert ended["data"]["ending"] == "too_long"
    assert "in one turn" in ended["data"]["reason"]


@pytest.mark.clause("B13.1")
async def test_a_turn_that_takes_too_long_ends_at_its_next_safe_point(hub: StillHub) -> None:
    limits = AgentLimits(turn=Limits(caps={Measure.MILLIS: 60_000}), inline_wait_s=5.0)
    agents, item = await worker(hub, TEST, TEST, WAIT_CI, limits=limits)

    async def hours_pass() -> None:
        hub.clock.go_on(3_600)

    agents.chat.meanwhile[0] = hours_pass
    await agents.go()
    assert len(agents.chat.requests) == 1
    assert "3,600 s of 60 s" in (await hub.row(REQUEST))["prompt"]
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR


@pytest.mark.clause("B13.1")
async def test_steps_of_a_turn_are_said_in_its_reason(hub: StillHub) -> None:
    agents, _ = await worker(hub, TEST, call("plan", {"steps": []}), limits=few_steps(2))
    await agents.go()
    (ended,) = await hub.rows(EVENT, stop="turn.ended")
    assert ended["data"]["reason"] == "2 of 2 steps in one turn"


# ------------------------------------------------------------------ several at once
@dataclass
class Slow:
    """A model whose answers come when they are let."""

    asked: list[ChatRequest] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    has_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        self.asked.append(request)
        self.has_asked.set()
        await self.answers.wait()
        usage = Usage(input=10, output=1)
        return ChatReply(model="m", text="", calls=(), usage=usage, first_byte_s=0.0, seconds=0.0)

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        return Reckoned(model="m", usage=Usage(input=10, output=said_chars))


@pytest.mark.clause("B16.2")
async def test_a_call_that_those_under_way_leave_no_room_for_waits_for_their_end(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    await cap(hub, DAY, 10)
    slow = Slow()
    meter = metered(hub, slow)
    request = ChatRequest(
        role="worker", session=item.session, messages=(Message(role=Role.USER, text="x"),)
    )
    spent = Cost(kind="model", session_id=item.session, tokens_input=10)

    async def ask() -> str:
        try:
            await meter.complete(request, lambda _: None)
        except ModelHeldError as error:
            return error.reason
        return ""

    async with asyncio.TaskGroup() as group:
        one = group.create_task(ask())
        await slow.has_asked.wait()
        other = group.create_task(ask())
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(slow.asked) == 1
        await hub.do(lambda u: charge(u, spent))
        slow.answers.set()
    assert one.result() == ""
    assert "10 tokens of 10 tokens" in other.result()
    assert len(slow.asked) == 1


# ------------------------------------------------------------------ nothing happens
@pytest.mark.clause("B16.3")
async def test_on_an_idle_day_no_model_is_asked(hub: StillHub) -> None:
    agents, _ = await metered_worker(hub, WAIT_CI)
    await hub.one(trigger(thread="pr:9"))
    await agents.go()
    asked = len(agents.chat.requests)
    rows = len(await hub.rows(LEDGER))
    for _ in range(24):
        hub.clock.go_on(3_600)
        await hub.do(deadlines.fire_due)
        assert await agents.go() == 0
    assert len(agents.chat.requests) == asked
    assert len(await hub.rows(LEDGER)) == rows


# ------------------------------------------------------------------ what a source will cost
@pytest.mark.clause("B16.2")
async def test_a_forecast_goes_by_the_last_week_and_quiet_days_count(hub: StillHub) -> None:
    item = await hub.opened()

    def day(tokens: int) -> Callable[[Unit], object]:
        cost = Cost(kind="model", session_id=item.session, tokens_input=tokens, usd_micros=tokens)
        return lambda u: charge(u, cost)

    assert (await hub.see(lambda c: costs.forecast(c, SOURCE, START_MS)))["days"] == 0
    for tokens in (1_000_000, 70, 0, 140):  # the first is longer ago than a week
        await hub.do(day(tokens))
        hub.clock.go_on(2 * 24 * 3600 if tokens else 3 * 24 * 3600)
    now_ms = int(hub.clock.now().timestamp() * 1000)
    found = await hub.see(lambda c: costs.forecast(c, SOURCE, now_ms))
    assert (found["days"], found["a_day"]["tokens_input"]) == (7, 30)
    assert (found["most"]["tokens_input"], found["month"]["usd_micros"]) == (140, 900)
    assert found["today"]["calls"] == 0
