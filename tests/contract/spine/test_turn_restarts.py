"""Turns over a real store, killed after each of their commits: the same story, told once (B8)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import pairwise

import pytest

from fixtures.agents import Agents, KilledError, Say, ScriptedChat, call, complete, named
from fixtures.still_hub import ANN, StillHub, trigger, without_ids
from upright.core import transcript
from upright.core.transcript import Role
from upright.core.trigger import Disposition
from upright.core.work import WorkItem, WorkState
from upright.engine.embedded import recover
from upright.engine.ports import ChatRequest, Lease
from upright.store.errors import LeaseLostError
from upright.store.tables import JOB, LEDGER, OUTBOX, SESSION, TRIGGER, WORK

JB = named("jb")
RED_TO_GREEN = (
    Say(
        "I look.",
        (
            ("plan", {"steps": [{"text": "look"}, {"text": "fix", "done": False}]}),
            ("run", {"argv": ["make", "test"]}),
        ),
    ),
    Say("", (("run", {"argv": ["git", "apply", "-"], "stdin": "a patch"}),)),
    Say("", (("run", {"argv": ["make", "test", "-j"]}), ("status", lambda r: {"job": JB(r)}))),
    call("reply", {"text": "Fixed: a typo."}),
    call("wait", {"for": "thread", "why": "CI runs"}),
    complete(tests_pass=named("jb")),
)
COMMITS = 23


@dataclass(frozen=True)
class Story:
    """What is left when it is over."""

    transcript: tuple[str, ...]
    effects: int
    jobs: int
    ran: int
    state: WorkState


async def play(hub: StillHub, agents: Agents) -> Story:
    """Let a worker mend a red build, with whatever happens to its process."""
    await hub.device()
    item = await hub.opened()
    await agents.go()
    assert (await hub.item(item)).state is not WorkState.COMPLETED
    await hub.one(trigger("ci.passed", native="green", text="All is well."))
    await agents.go()
    return await story(hub, agents, item)


async def story(hub: StillHub, agents: Agents, item: WorkItem) -> Story:
    return Story(
        transcript=tuple(without_ids(await agents.transcript(item.session))),
        effects=len(await hub.rows(OUTBOX)),
        jobs=len(await hub.rows(JOB)),
        ran=len(agents.box.ran),
        state=(await hub.item(item)).state,
    )


async def check(hub: StillHub, agents: Agents, session: str) -> None:
    """Check the laws of every transcript: one answer a call, and only growth."""
    messages = (await agents.loaded(session)).messages
    transcript.check(messages)
    assert transcript.unanswered(messages) == ()
    answered = [message.call_id for message in messages if message.role is Role.TOOL]
    assert len(answered) == len(set(answered))
    prompts = [
        prompt
        for prompt, request in zip(agents.prompts(), agents.chat.requests, strict=True)
        if request.session == session
    ]
    for earlier, later in pairwise(prompts):
        assert later[: len(earlier)] == earlier


@pytest.mark.clause("B8.1", "B8.2")
async def test_a_red_build_is_mended_and_every_prompt_begins_with_the_one_before(
    hub: StillHub,
) -> None:
    agents = Agents(hub, ScriptedChat(worker=RED_TO_GREEN))
    told = await play(hub, agents)
    assert (told.effects, told.jobs, told.ran) == (1, 3, 3)
    assert told.state is WorkState.COMPLETED
    item = await hub.row(WORK)
    await check(hub, agents, item["session_id"])
    assert len(await hub.rows(LEDGER, kind="model")) == len(RED_TO_GREEN) == len(agents.prompts())
    assert agents.commits == COMMITS
    assert agents.outward == 1
    assert (await hub.row(SESSION, id=item["session_id"]))["ended_at_ms"] is not None


@pytest.mark.clause("B8.1", "B8.2", "B8.6", "B15.1")
@pytest.mark.parametrize("dies_at", range(COMMITS))
async def test_a_worker_that_is_killed_after_any_commit_tells_the_same_story(
    hub: StillHub, other: StillHub, dies_at: int
) -> None:
    wanted = await play(other, Agents(other, ScriptedChat(worker=RED_TO_GREEN)))
    agents = Agents(hub, ScriptedChat(worker=RED_TO_GREEN), dies_at=dies_at)
    assert await play(hub, agents) == wanted
    await check(hub, agents, (await hub.row(WORK))["session_id"])
    assert agents.deaths == 1


@pytest.mark.clause("B8.6")
@pytest.mark.parametrize("step", range(len(RED_TO_GREEN)))
async def test_a_turn_that_is_cancelled_while_the_model_thinks_is_taken_up_again(
    hub: StillHub, other: StillHub, step: int
) -> None:
    wanted = await play(other, Agents(other, ScriptedChat(worker=RED_TO_GREEN)))
    chat = ScriptedChat(worker=RED_TO_GREEN)
    agents = Agents(hub, chat)

    async def die() -> None:
        raise KilledError

    chat.meanwhile[step] = die
    assert await play(hub, agents) == wanted
    assert len(chat.requests) == len(RED_TO_GREEN) + 1
    assert agents.prompts()[step] == agents.prompts()[step + 1]


@pytest.mark.clause("B8.5")
async def test_a_turn_that_lost_its_lease_writes_nothing_more(hub: StillHub) -> None:
    chat = ScriptedChat(worker=RED_TO_GREEN)
    agents = Agents(hub, chat)
    await hub.device()
    item = await hub.opened()
    before: list[str] = []

    async def takes_over() -> None:
        await hub.do(recover)
        assert len(await hub.claim()) == 1
        before.extend(await agents.transcript(item.session))

    chat.meanwhile[0] = takes_over
    (claim,) = await hub.claim()
    with pytest.raises(LeaseLostError):
        await agents.runner()(Lease(session=claim.session, epoch=claim.epoch))
    assert await agents.transcript(item.session) == before
    assert await hub.rows(JOB) == await hub.rows(LEDGER) == []


# ------------------------------------------------------------------ what comes in between
def until_green(request: ChatRequest) -> Say:
    """Wait for the build, and complete when it is green."""
    is_green = any("kind=ci.passed" in message.text for message in request.messages)
    return RED_TO_GREEN[5] if is_green else RED_TO_GREEN[4]


@pytest.mark.clause("B8.4", "B6.4", "B11.5")
@pytest.mark.parametrize("dies", [False, True], ids=["alive", "killed"])
@pytest.mark.parametrize("comes_at", range(COMMITS))
async def test_a_trigger_that_comes_at_any_commit_is_told_exactly_once(
    hub: StillHub, comes_at: int, *, dies: bool
) -> None:
    chat = ScriptedChat(worker=(*RED_TO_GREEN[:4], until_green), router=(Say("Noted."),))
    agents = Agents(hub, chat, dies_at=comes_at if dies else None)
    came: list[str] = []

    async def come() -> None:
        came.append((await hub.one(trigger("comment.created", by=ANN, thread="pr:7"))).id)

    async with asyncio.TaskGroup() as group:
        agents.at_commit[comes_at] = lambda: group.create_task(come())
        await play(hub, agents)
    await agents.go()
    (item,) = await hub.rows(WORK)
    assert item["state"] == WorkState.COMPLETED
    told = [*await agents.transcript(item["session_id"])]
    told += await agents.transcript(await hub.router())
    assert len([one for one in told if f"trigger {came[0]} " in one]) <= 1
    heard = await hub.row(TRIGGER, id=came[0])
    is_held = heard["disposition"] == Disposition.HELD
    assert is_held or any(f"trigger {came[0]} " in one for one in told)
    assert agents.deaths == dies
    await check(hub, agents, item["session_id"])


# ------------------------------------------------------------------ the router
SPAWN = (
    call(
        "spawn",
        lambda r: {
            "trigger": named("tr")(r),
            "goal": "make it green",
            "criteria": ["tests pass"],
        },
    ),
    Say("I opened an item."),
)


async def spawned(hub: StillHub, agents: Agents) -> None:
    """Let the router open an item, and its worker ask."""
    await hub.one(trigger())
    await agents.go()
    (item,) = await hub.rows(WORK)
    assert item["state"] == WorkState.WAITING_OPERATOR
    assert len(await hub.rows(SESSION, kind="worker")) == 1
    await check(hub, agents, item["session_id"])
    await check(hub, agents, await hub.router())


@pytest.mark.clause("B5.2")
async def test_the_router_opens_an_item_and_its_worker_begins(hub: StillHub) -> None:
    agents = Agents(hub, ScriptedChat(router=SPAWN, worker=(call("ask", {"question": "How?"}),)))
    await spawned(hub, agents)
    assert agents.commits == ROUTER_COMMITS


ROUTER_COMMITS = 11


@pytest.mark.clause("B5.2", "B8.6")
@pytest.mark.parametrize("dies_at", range(ROUTER_COMMITS))
async def test_a_router_that_is_killed_after_any_commit_opens_one_item(
    hub: StillHub, dies_at: int
) -> None:
    chat = ScriptedChat(router=SPAWN, worker=(call("ask", {"question": "How?"}),))
    agents = Agents(hub, chat, dies_at=dies_at)
    await spawned(hub, agents)
    assert agents.deaths == 1
