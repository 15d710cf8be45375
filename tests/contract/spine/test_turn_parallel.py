"""Turns beside which a question is answered: read-only, charged, appended as an aside (B9.5)."""

from __future__ import annotations

import asyncio
from collections import deque

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
    is_beside,
    named,
    users,
    worker,
)
from fixtures.red_to_green import check
from fixtures.still_hub import ANN, StillHub, trigger
from upright.agent import steps
from upright.agent.side import SideLimits, Sides
from upright.agent.turn import AgentLimits
from upright.core.ids import TriggerId
from upright.core.strategy import OPERATOR_QUESTION
from upright.core.transcript import Role
from upright.core.work import Blocked, WorkState
from upright.engine.ports import ModelUnavailableError
from upright.store import people, work
from upright.store.errors import NotNowError
from upright.store.tables import DELIVERY, EVENT, JOB, LEDGER, TRIGGER, TURN

PLAN = call("plan", {"steps": [{"text": "look"}]})
ANSWERED = "side.answered"


async def ask(hub: StillHub, agents: Agents, session: str) -> str:
    """Ask a session how far it is, and tell its turn."""
    made = await hub.do(lambda u: people.say(u, session, "How far are you?", OPERATOR_QUESTION))
    agents.signals.notify(session)
    return made


async def answered(hub: StillHub) -> bool:
    return bool(await hub.rows(EVENT, stop=ANSWERED))


async def asked_and_answered(hub: StillHub, agents: Agents, session: str) -> None:
    await ask(hub, agents, session)
    await hub.until(lambda: answered(hub))


@pytest.mark.clause("B9.5", "B8.1")
async def test_a_question_is_answered_while_the_model_thinks_and_appended_as_an_aside(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    agents.chat.meanwhile[0] = lambda: asked_and_answered(hub, agents, item.session)
    assert await agents.go() == 1
    messages = (await agents.loaded(item.session)).messages
    _, aside = users(messages)
    assert aside.index("kind=operator.question") < aside.index("kind=side.answered")
    assert "ran in parallel" in aside
    assert "All is well." in aside
    roles = [message.role.value for message in messages[:5]]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    event = await hub.row(EVENT, stop=ANSWERED)
    assert event["data"]["answer"] == "All is well."
    assert len(await hub.rows(TURN)) == 1
    await check(hub, agents, item.session)


@pytest.mark.clause("B9.5", "B16.1")
async def test_a_side_step_asks_with_the_prompt_of_the_turn_and_is_charged(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    agents.chat.meanwhile[1] = lambda: asked_and_answered(hub, agents, item.session)
    await agents.go()
    (side,) = [request for request in agents.chat.requests if is_beside(request)]
    main = [request for request in agents.chat.requests if not is_beside(request)]
    assert side.messages[:-1] == main[1].messages
    assert side.tools == main[1].tools
    assert len(await hub.rows(LEDGER, kind="model")) == len(main) + 1


@pytest.mark.clause("B9.5")
async def test_while_a_command_runs_a_side_step_sees_what_was_settled_before_it(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, PLAN, TEST, WAIT_CI)
    agents.box.answer = lambda argv, stdin: None

    async def come() -> None:
        await hub.until(lambda: runs(hub))
        await asked_and_answered(hub, agents, item.session)
        await agents.box.end((await hub.row(JOB))["id"], 0)

    async with asyncio.TaskGroup() as group:
        group.create_task(come())
        await agents.go()
    (side,) = [request for request in agents.chat.requests if is_beside(request)]
    assert [m.role for m in side.messages] == [
        *(Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL),
        Role.USER,
    ]
    (_, said, _) = await agents.told(item.session)
    assert said["outcome"] == "exited"
    await check(hub, agents, item.session)


async def runs(hub: StillHub) -> bool:
    return any(row["state"] == "running" for row in await hub.rows(JOB))


@pytest.mark.clause("B9.5")
async def test_a_side_step_reads_and_does_nothing_else(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, WAIT_CI)
    read = call("read", lambda request: {"id": named("tr")(request)})
    agents.chat.beside = (call("run", {"argv": ["rm"]}), read, Say("It broke."))
    agents.chat.meanwhile[0] = lambda: asked_and_answered(hub, agents, item.session)
    await agents.go()
    last = [request for request in agents.chat.requests if is_beside(request)][-1]
    refused, found = [m.text for m in last.messages if m.role is Role.TOOL][-2:]
    assert "run can't be called beside a turn" in refused
    assert "It broke." in found
    assert agents.box.ran == [["make", "test"]]
    await check(hub, agents, item.session)


@pytest.mark.clause("B9.5", "B8.4")
async def test_an_answer_that_comes_as_the_turn_rests_asks_the_model_nothing(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, WAIT_CI, WAIT_CI)
    goes_on = asyncio.Event()

    async def slow() -> None:
        await goes_on.wait()

    async def come() -> None:
        await hub.until(lambda: waits(hub))
        goes_on.set()

    agents.chat.while_beside.append(slow)
    agents.chat.meanwhile[0] = lambda: ask(hub, agents, item.session)
    async with asyncio.TaskGroup() as group:
        group.create_task(come())
        assert await agents.go() == 1
    assert await answered(hub)
    assert [is_beside(request) for request in agents.chat.requests] == [False, True]
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    batch = users((await agents.loaded(item.session)).messages)[-1]
    for n, kind in enumerate(("operator.question", "side.answered", "comment.created"), start=1):
        assert f"[{n} of 3]" in batch
        assert f"kind={kind}" in batch


@pytest.mark.clause("B9.5")
async def test_who_looked_before_an_answer_was_stored_asks_the_model_no_second_time(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, WAIT_CI)
    question = TriggerId(await ask(hub, agents, item.session))
    (claim,) = [one for one in await hub.claim() if one.session == item.session]
    turn = await hub.do(lambda u: steps.begin(u, claim))
    over = asyncio.Event()
    sides = Sides(hub.units, agents.chat, SideLimits(), over.set)
    async with asyncio.TaskGroup() as group:
        sides.start(group, turn, question)
        await over.wait()
        sides.start(group, turn, question)
    assert await answered(hub)
    assert [is_beside(request) for request in agents.chat.requests] == [True]
    assert sides.declined == frozenset()


async def waits(hub: StillHub) -> bool:
    return any(row["stop"] == "tool.ran" for row in await hub.rows(EVENT))


@pytest.mark.clause("B9.5")
@pytest.mark.parametrize("how", ["fails", "talks in calls", "too many"])
async def test_a_question_that_no_side_step_answers_is_taken_by_the_turn(
    hub: StillHub, how: str
) -> None:
    at_once = 0 if how == "too many" else 2
    limits = AgentLimits(side=SideLimits(steps=2, at_once=at_once))
    agents, item = await worker(hub, TEST, WAIT_CI, limits=limits)
    agents.chat.beside = (call("run", {"argv": ["x"]}),)

    async def fail() -> None:
        raise ModelUnavailableError("down")

    if how == "fails":
        agents.chat.while_beside.append(fail)
    agents.chat.meanwhile[0] = lambda: ask(hub, agents, item.session)
    await agents.go()
    batch = users((await agents.loaded(item.session)).messages)[-1]
    assert "kind=operator.question" in batch
    assert "side.answered" not in batch
    assert await hub.rows(DELIVERY, taken_n=None) == []


@pytest.mark.clause("B9.5")
async def test_a_question_to_a_session_at_rest_is_an_ordinary_turn(hub: StillHub) -> None:
    agents, item = await worker(hub, WAIT_CI, Say("Half way."))
    await agents.go()
    asked = await ask(hub, agents, item.session)
    assert await agents.go() == 1
    assert not await answered(hub)
    assert (await hub.row(DELIVERY, trigger_id=asked))["strategy"] == "queue"
    assert (await agents.loaded(item.session)).messages[-1].text == "Half way."
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL


async def test_a_question_to_a_blocked_item_is_refused_and_unblocks_nothing(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, call("ask", {"question": "Which?"}), WAIT_CI)
    await agents.go()
    await hub.do(lambda u: work.move(u, work.read(u.c, item.id), Blocked(), reason="?"))
    with pytest.raises(NotNowError, match="answer what it asks"):
        await ask(hub, agents, item.session)
    assert (await hub.item(item)).state is WorkState.BLOCKED


# ------------------------------------------------------------------ a hub that dies
@pytest.mark.clause("B9.5", "B8.6")
async def test_a_question_whose_side_step_died_with_the_hub_is_still_queued(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, DONE)

    async def die() -> None:
        raise KilledError

    agents.chat.while_beside = deque([die])
    agents.chat.meanwhile[0] = lambda: ask_and_wait(hub, agents, item.session)
    await agents.go()
    told = users((await agents.loaded(item.session)).messages)
    assert [text.count("kind=operator.question") for text in told] == [0, 1]
    assert not await answered(hub)
    assert agents.deaths == 1
    await check(hub, agents, item.session)


async def ask_and_wait(hub: StillHub, agents: Agents, session: str) -> None:
    await ask(hub, agents, session)
    await asyncio.Event().wait()


COMMITS = 11


@pytest.mark.clause("B9.5", "B8.1", "B8.6")
@pytest.mark.parametrize("dies_at", [None, *range(COMMITS)])
async def test_question_and_answer_are_told_once_wherever_the_hub_dies(
    hub: StillHub, dies_at: int | None
) -> None:
    await hub.device()
    item = await hub.opened()
    agents = Agents(hub, ScriptedChat(worker=(PLAN, TEST, DONE)), dies_at=dies_at)
    agents.chat.meanwhile[1] = lambda: asked_and_answered(hub, agents, item.session)
    await agents.go()
    told = "\n".join(users((await agents.loaded(item.session)).messages))
    assert told.count("kind=operator.question") == 1
    assert told.count("kind=side.answered") == len(await hub.rows(EVENT, stop=ANSWERED)) <= 1
    assert len(await hub.rows(TRIGGER, kind="operator.question")) == 1
    assert (await hub.item(item)).state is WorkState.COMPLETED
    if dies_at is None:
        assert agents.commits == COMMITS
    await check(hub, agents, item.session)
