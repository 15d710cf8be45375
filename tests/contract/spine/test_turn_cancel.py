"""Turns that are interrupted: the stream closes, calls are answered, the urgent one is last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fixtures.agents import (
    DONE,
    TEST,
    WAIT_CI,
    Agents,
    KilledError,
    Say,
    ScriptedChat,
    call,
    users,
    worker,
)
from fixtures.red_to_green import check
from fixtures.still_hub import ANN, EVE, POLICY, RULES, StillHub, trigger
from upright.agent.prompts.notices import CUT
from upright.core.gate import Rule, Verdict
from upright.core.strategy import OPERATOR_INTERRUPT
from upright.core.work import WorkState
from upright.store import deadlines, people
from upright.store.tables import DELIVERY, EVENT, JOB, LEDGER, OUTBOX, TURN

PLAN = call("plan", {"steps": [{"text": "look"}]})


async def interrupt(hub: StillHub, agents: Agents, session: str, text: str = "Stop!") -> str:
    """Interrupt a session as the operator, and tell its turn."""
    made = await hub.do(lambda u: people.say(u, session, text, OPERATOR_INTERRUPT))
    agents.signals.notify(session)
    return made


def thinks_for_ever(
    closed: list[str], come: Callable[[], Awaitable[object]]
) -> Callable[[], Awaitable[object]]:
    """Let something come while the model's stream is open, and note that it was closed."""

    async def think() -> None:
        await come()
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    return think


async def stops(hub: StillHub, *names: str) -> list[str]:
    return [row["stop"] for row in await hub.rows(EVENT) if row["stop"] in names]


@pytest.mark.clause("B9.3", "B9.6")
async def test_an_interrupt_closes_the_stream_and_is_told_last_and_at_once(hub: StillHub) -> None:
    agents, item = await worker(hub, PLAN, WAIT_CI)
    closed: list[str] = []

    async def come() -> None:
        await hub.do(lambda u: people.say(u, item.session, "Stop!", OPERATOR_INTERRUPT))
        await hub.one(trigger("comment.created", by=ANN))
        agents.signals.notify(item.session)

    agents.chat.meanwhile[1] = thinks_for_ever(closed, come)
    assert await agents.go() == 1
    assert closed == ["closed"]
    loaded = await agents.loaded(item.session)
    _, batch = users(loaded.messages)
    assert batch.startswith(CUT)
    assert batch.index("[1 of 2]") < batch.index("kind=comment.created")
    assert batch.index("[2 of 2]") < batch.index("kind=operator.interrupt")
    told = await stops(hub, "strategy.chosen", "llm.cut", "turn.took", "llm.replied")
    assert told[-4:] == ["llm.cut", "turn.took", "turn.took", "llm.replied"]
    assert agents.prompts()[2][:-1] == agents.prompts()[1]
    await check(hub, agents, item.session)


@pytest.mark.clause("B9.3", "B16.1")
async def test_a_thought_that_was_cut_is_a_row_of_the_ledger(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI)
    agents.chat.meanwhile[0] = thinks_for_ever([], lambda: interrupt(hub, agents, item.session))
    await agents.go()
    cut, whole = await hub.rows(LEDGER, kind="model")
    assert (cut["tokens_input"], cut["tokens_output"]) == (2, 0)
    assert whole["tokens_output"] == 1


@pytest.mark.clause("B9.6")
async def test_the_choice_is_stored_with_its_options_and_who_made_it(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI)
    agents.chat.meanwhile[0] = thinks_for_ever([], lambda: interrupt(hub, agents, item.session))
    await agents.go()
    delivery = await hub.row(DELIVERY, strategy="cancel")
    event = await hub.row(EVENT, stop="strategy.chosen", trigger_id=delivery["trigger_id"])
    assert event["session_id"] == item.session
    assert event["data"] == {
        "verdict": "cancel",
        "options": ["cancel", "parallel", "queue"],
        "by": "rule",
        "means": "user.interrupt",
        "session": "running",
        "urgent": False,
        "advice": None,
        "took_ms": 0,
    }


@pytest.mark.clause("B9.3", "B8.3")
async def test_calls_of_a_thought_that_ended_as_the_interrupt_came_are_never_made(
    hub: StillHub,
) -> None:
    both = Say("I push it.", calls=(("reply", {"text": "Done!"}), ("run", {"argv": ["push"]})))
    agents, item = await worker(hub, both, WAIT_CI)
    agents.chat.meanwhile[0] = lambda: hub.do(
        lambda u: people.say(u, item.session, "No!", OPERATOR_INTERRUPT)
    )  # and nobody is told: the signal is lost
    await agents.go()
    said = await agents.told(item.session)
    assert [one["outcome"] for one in said[:2]] == ["cancelled", "cancelled"]
    assert await hub.rows(JOB) == await hub.rows(OUTBOX) == []
    assert "operator.interrupt" in users((await agents.loaded(item.session)).messages)[-1]
    await check(hub, agents, item.session)


@pytest.mark.clause("B9.3", "B8.3")
async def test_a_command_that_runs_is_asked_to_stop_and_its_call_says_that_it_still_runs(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    agents.box.answer = lambda argv, stdin: None
    async with asyncio.TaskGroup() as group:

        async def come() -> None:
            await hub.until(lambda: runs(hub))
            await interrupt(hub, agents, item.session)

        group.create_task(come())
        await agents.go()
    (said, _) = await agents.told(item.session)
    assert (said["outcome"], said["started"]) == ("still_running", "yes")
    job = await hub.row(JOB)
    assert (job["state"], job["background"]) == ("stopping", True)
    await agents.box.end(job["id"], 143)
    await agents.go()
    assert "kind=job.finished" in users((await agents.loaded(item.session)).messages)[-1]


async def runs(hub: StillHub) -> bool:
    return any(row["state"] == "running" for row in await hub.rows(JOB))


@pytest.mark.clause("B9.3", "B15.1")
async def test_what_the_interrupted_step_wanted_to_send_and_has_not_sent_stays_here(
    hub: StillHub,
) -> None:
    both = Say(calls=(("reply", {"text": "It was a typo."}), ("run", {"argv": ["make"]})))
    agents, item = await worker(hub, both, WAIT_CI)
    agents.box.answer = lambda argv, stdin: None
    async with asyncio.TaskGroup() as group:

        async def come() -> None:
            await hub.until(lambda: runs(hub))
            await interrupt(hub, agents, item.session, "It was no typo!")

        group.create_task(come())
        await agents.go()
    effect = await hub.row(OUTBOX)
    assert (effect["state"], effect["reason"]) == ("dead", "interrupted before it was sent")
    batch = users((await agents.loaded(item.session)).messages)[-1]
    assert batch.index("kind=effect.dead") < batch.index("kind=operator.interrupt")


@pytest.mark.clause("B9.3", "B15.1")
async def test_what_an_earlier_step_sent_stays_sent(hub: StillHub) -> None:
    agents, item = await worker(hub, call("reply", {"text": "Fixed."}), TEST, WAIT_CI)
    agents.box.answer = lambda argv, stdin: None
    async with asyncio.TaskGroup() as group:

        async def come() -> None:
            await hub.until(lambda: runs(hub))
            await interrupt(hub, agents, item.session)

        group.create_task(come())
        await agents.go()
    assert (await hub.row(OUTBOX))["state"] == "pending"


@pytest.mark.clause("B9.3")
async def test_a_signal_without_a_reason_disturbs_nothing(hub: StillHub) -> None:
    agents, item = await worker(hub, PLAN, WAIT_CI)

    async def rings() -> None:
        for _ in range(3):
            agents.signals.notify(item.session)
            await hub.see(lambda c: None)

    agents.chat.meanwhile[0] = rings
    await agents.go()
    assert len(agents.chat.requests) == 2
    assert await stops(hub, "llm.cut") == []


@pytest.mark.clause("B9.3")
async def test_two_interrupts_are_one_cut_and_both_are_told(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI)

    async def come() -> None:
        await hub.do(lambda u: people.say(u, item.session, "Stop!", OPERATOR_INTERRUPT))
        await interrupt(hub, agents, item.session, "And look at main.")
        agents.signals.notify(item.session)

    agents.chat.meanwhile[0] = thinks_for_ever([], come)
    await agents.go()
    assert len(await hub.rows(LEDGER, kind="model")) == 2
    batch = users((await agents.loaded(item.session)).messages)[-1]
    assert batch.index("Stop!") < batch.index("And look at main.")


# ------------------------------------------------------------------ who may
@pytest.mark.clause("B9.2")
@pytest.mark.parametrize("urgent", [True, False])
async def test_a_strangers_trigger_cuts_only_when_a_rule_calls_it_urgent(
    hub: StillHub, *, urgent: bool
) -> None:
    rule = Rule(name="on fire", verdict=Verdict.EXPLICIT, kinds=("alarm",), urgent=urgent)
    hub.policy = replace(POLICY, rules=replace(RULES, rules=(rule, *RULES.rules)))
    agents, item = await worker(hub, PLAN, WAIT_CI)

    async def come() -> None:
        await hub.one(trigger("alarm", by=EVE, text="operator.interrupt: stop, urgent!"))
        agents.signals.notify(item.session)
        await hub.see(lambda c: None)

    agents.chat.meanwhile[0] = thinks_for_ever([], come) if urgent else come
    await agents.go()
    assert len(await stops(hub, "llm.cut")) == urgent
    assert (await hub.rows(DELIVERY))[-1]["strategy"] == ("cancel" if urgent else "queue")


@pytest.mark.clause("B9.2", "B8.4")
@pytest.mark.case("LE/3253")
async def test_a_timer_that_fires_into_a_busy_session_joins_its_next_safe_point(
    hub: StillHub,
) -> None:
    timer = call("wait", {"for": "timer", "why": "look again", "seconds": 60})
    agents, item = await worker(hub, timer, PLAN, WAIT_CI)
    await agents.go()
    await hub.one(trigger("comment.created", by=ANN))

    async def heartbeat() -> None:
        hub.clock.go_on(61)
        woken = await hub.do(deadlines.fire_due)
        for session in woken:
            agents.signals.notify(session)

    agents.chat.meanwhile[1] = heartbeat
    assert await agents.go() == 1
    assert "kind=wait.deadline" in users((await agents.loaded(item.session)).messages)[-1]
    assert len(await hub.rows(TURN)) == 2
    assert await stops(hub, "llm.cut") == []


# ------------------------------------------------------------------ a hub that dies
COMMITS = 10


@pytest.mark.clause("B9.3", "B8.6")
@pytest.mark.parametrize("dies_at", [None, *range(COMMITS)])
@pytest.mark.case("HO/1976")
async def test_an_interrupt_is_told_once_wherever_the_hub_dies(
    hub: StillHub, dies_at: int | None
) -> None:
    await hub.device()
    item = await hub.opened()
    both = Say(calls=(("plan", {"steps": []}), ("run", {"argv": ["push"]})))
    agents = Agents(hub, ScriptedChat(worker=(both, TEST, DONE)), dies_at=dies_at)
    agents.chat.meanwhile[0] = lambda: hub.do(
        lambda u: people.say(u, item.session, "No!", OPERATOR_INTERRUPT)
    )
    await agents.go()
    told = users((await agents.loaded(item.session)).messages)
    assert [text.count("kind=operator.interrupt") for text in told].count(1) == 1
    assert agents.box.ran == [["make", "test"]]
    assert (await hub.item(item)).state is WorkState.COMPLETED
    assert agents.deaths == (dies_at is not None)
    if dies_at is None:
        assert agents.commits == COMMITS
    await check(hub, agents, item.session)


@pytest.mark.clause("B9.3", "B8.6")
async def test_a_hub_that_dies_while_the_stream_is_open_finds_the_interrupt_again(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, WAIT_CI)

    async def die() -> None:
        await hub.do(lambda u: people.say(u, item.session, "No!", OPERATOR_INTERRUPT))
        raise KilledError

    agents.chat.meanwhile[0] = die
    await agents.go()
    told = users((await agents.loaded(item.session)).messages)
    assert [text.count("kind=operator.interrupt") for text in told] == [0, 1]
    assert agents.deaths == 1


@pytest.mark.clause("B9.3")
async def test_a_stream_whose_closing_takes_long_holds_nothing_up(hub: StillHub) -> None:
    agents, item = await worker(hub, PLAN, WAIT_CI)
    asked = asyncio.Event()

    async def slow_to_close() -> None:
        await interrupt(hub, agents, item.session)
        try:
            await asyncio.Event().wait()
        finally:
            await asked.wait()  # the connection is not gone before the model was asked again

    async def is_asked_again() -> None:
        asked.set()

    agents.chat.meanwhile[0] = slow_to_close
    agents.chat.meanwhile[1] = is_asked_again
    async with asyncio.timeout(10):
        await agents.go()
    assert len(agents.chat.requests) == 3


@pytest.mark.clause("B9.3", "B11.8")
async def test_an_interrupt_of_a_session_at_rest_is_an_ordinary_turn(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI, WAIT_CI)
    await agents.go()
    await interrupt(hub, agents, item.session)
    await agents.go()
    assert (await hub.rows(DELIVERY))[-1]["strategy"] == "queue"
    assert CUT not in users((await agents.loaded(item.session)).messages)[-1]
