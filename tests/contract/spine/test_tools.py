"""Tools over a real store: the router's, the worker's word to it, reading by id, and the card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fixtures.agents import (
    TEST,
    WAIT_CI,
    Agents,
    Arguments,
    Say,
    ScriptedChat,
    call,
    named,
    users,
    worker,
)
from fixtures.still_hub import ANN, CODE, EVE, PULL, StillHub, decided, trigger
from upright.api import Actor, Address, Destination
from upright.core.work import WorkState
from upright.engine.ports import ChatRequest
from upright.store import intake, people
from upright.store.tables import OUTBOX, REQUEST, SESSION, TRIGGER, WAIT, WORK
from upright.store.work import own_branch

TRIGGER_ID = named("tr")
SPAWN = ("spawn", lambda r: {"trigger": TRIGGER_ID(r), "goal": "g", "criteria": ["c", "c", "d"]})


def to_trigger(**more: str) -> Arguments:
    """Return arguments that name the first trigger of the transcript."""
    return lambda request: {"trigger": TRIGGER_ID(request), **more}


def to_id(**more: int) -> Arguments:
    """Return arguments that read the first trigger of the transcript."""
    return lambda request: {"id": TRIGGER_ID(request), **more}


async def routed(hub: StillHub, *script: Say, reply_to: Destination | None = PULL) -> Agents:
    """Let the router deal with a mention."""
    agents = Agents(hub, ScriptedChat(router=script, worker=(call("ask", {"question": "?"}),)))
    await hub.one(trigger("comment.created", by=ANN, address=Address.MENTION, reply_to=reply_to))
    await agents.go()
    return agents


# ------------------------------------------------------------------ the router
@pytest.mark.clause("B5.1", "B15.1")
async def test_the_router_answers_where_a_trigger_came_from(hub: StillHub) -> None:
    agents = await routed(hub, call("reply", to_trigger(text="Soon.")), Say("Done."))
    effect = await hub.row(OUTBOX)
    assert (effect["state"], effect["text"], effect["work_id"]) == ("pending", "Soon.", None)
    assert effect["destination"]["address"] == [list(pair) for pair in PULL.address]
    assert agents.outward == 1


@pytest.mark.clause("B14.2", "B14.3")
async def test_what_the_router_answers_after_a_strangers_text_waits_for_a_person(
    hub: StillHub,
) -> None:
    reply = call("reply", lambda r: {"trigger": last_trigger(r), "text": "Soon."})
    agents = await routed(hub, Say("Noted."), reply, Say("Asked."), Say("Sent."))
    router = await hub.router()
    await hub.do(lambda u: people.say(u, router, "hello"))
    await hub.one(trigger("ci.failed", by=EVE, thread="pr:9"))
    await agents.go()
    effect, request = await hub.row(OUTBOX), await hub.row(REQUEST)
    assert (effect["state"], request["kind"], request["work_id"]) == ("held", "approval", None)
    await hub.do(lambda u: decided(u, request["id"], "ann"))
    await agents.go()
    assert (await hub.row(OUTBOX))["state"] == "pending"
    assert "approval.approved" in users((await agents.loaded(router)).messages)[-1]


def last_trigger(request: ChatRequest) -> str:
    """Return the id of the trigger that came last."""
    words = users(request.messages)[-1].split()
    return [word for word in words if word.startswith("tr_")][-1]


@pytest.mark.parametrize("tool", ["reply", "spawn", "ask"])
async def test_the_router_acts_on_its_own_triggers_only(hub: StillHub, tool: str) -> None:
    foreign = await hub.one(trigger("comment.created", by=ANN, thread="pr:8"))
    rest: Mapping[str, Mapping[str, Any]] = {
        "reply": {"text": "Hi."},
        "spawn": {"goal": "g", "criteria": ["c"]},
        "ask": {"question": "?"},
    }
    agents = await routed(hub, call(tool, {"trigger": foreign.id, **rest[tool]}), Say("Oh."))
    (said,) = await agents.told(await hub.router())
    assert said["error"] == f"{foreign.id} is no trigger of yours"
    assert await hub.rows(OUTBOX) == await hub.rows(WORK) == await hub.rows(REQUEST) == []


async def test_a_trigger_without_a_place_to_answer_is_not_answered(hub: StillHub) -> None:
    reply = call("reply", to_trigger(text="Soon."))
    agents = await routed(hub, reply, Say("Oh."), reply_to=None)
    (said,) = await agents.told(await hub.router())
    assert "has no place to reply to" in said["error"]


@pytest.mark.clause("B5.2")
@pytest.mark.case("OC/116015")
async def test_spawning_twice_for_one_trigger_gives_the_same_item(hub: StillHub) -> None:
    agents = await routed(hub, Say(calls=(SPAWN, SPAWN)), Say("Done."))
    first, second = await agents.told(await hub.router())
    assert (first["work"], first["created"]) == (second["work"], True)
    assert not second["created"]
    item = await hub.row(WORK)
    assert item["criteria"] == ["c", "d"]
    assert item["state"] == WorkState.WAITING_OPERATOR


async def test_a_person_answers_the_routers_question(hub: StillHub) -> None:
    agents = await routed(hub, call("ask", to_trigger(question="Now?")), Say("I wait."))
    request = await hub.row(REQUEST)
    assert request["prompt"].startswith("Now?")
    await hub.do(lambda u: people.answer(u, request["id"], "yes", "ann"))
    await agents.go()
    last = users((await agents.loaded(await hub.router())).messages)[-1]
    assert "kind=operator.answer" in last
    assert "role=instruction" in last


@pytest.mark.clause("B5.1")
async def test_the_router_has_no_shell(hub: StillHub) -> None:
    agents = await routed(hub, TEST, Say("Oh."))
    (said,) = await agents.told(await hub.router())
    assert "there is no tool 'run'" in said["error"]


# ------------------------------------------------------------------ the worker
@pytest.mark.clause("B6.8")
@pytest.mark.parametrize(("by", "trust"), [(ANN, "member"), (EVE, "stranger")])
async def test_a_report_wakes_the_router_and_is_as_tainted_as_its_worker(
    hub: StillHub, by: Actor, trust: str
) -> None:
    item = await hub.opened(trigger(by=by))
    agents = Agents(
        hub,
        ScriptedChat(
            worker=(call("report", {"text": "A typo."}), WAIT_CI), router=(Say("Noted."),)
        ),
    )
    await agents.go()
    router = await hub.router()
    (report,) = await hub.rows(TRIGGER, kind="worker.report")
    assert (report["trust"], report["thread_id"]) == (trust, item.thread)
    assert "A typo." in users((await agents.loaded(router)).messages)[-1]
    assert (await hub.row(SESSION, id=router))["taint"] == trust


@pytest.mark.clause("B11.10")
async def test_a_wake_begins_with_the_card_and_what_it_knows(hub: StillHub) -> None:
    plan = call("plan", {"steps": [{"text": "look", "done": True}, {"text": "fix"}]})
    agents, item = await worker(hub, plan, WAIT_CI, WAIT_CI)
    await agents.go()
    await hub.one(trigger("ci.passed"))
    await agents.go()
    told = users((await agents.loaded(item.session)).messages)
    first, second = (json.loads(text.split("\n")[1]) for text in told)
    assert (first["goal"], first["criteria"], first["plan"]) == (
        "make it green",
        ["tests pass"],
        [],
    )
    assert [step["done"] for step in second["plan"]] == [True, False]
    assert first["place"]["workspace"] == "/src/app"
    assert first["place"]["branch"] == "fix"
    assert first["place"]["worktree"].startswith("/src/app.worktrees/")


@pytest.mark.clause("B11.10", "B14.6")
async def test_a_forks_branch_is_not_pushed_to(hub: StillHub) -> None:
    await hub.device()
    item = await hub.opened(trigger(code=replace(CODE, fork=True)))
    agents = Agents(hub, ScriptedChat(worker=(WAIT_CI,)))
    await agents.go()
    card = json.loads(users((await agents.loaded(item.session)).messages)[0].split("\n")[1])
    assert card["place"]["branch"] == own_branch(item.id)


async def test_a_card_without_a_device_says_so(hub: StillHub) -> None:
    item = await hub.opened()
    agents = Agents(hub, ScriptedChat(worker=(WAIT_CI,)))
    await agents.go()
    card = json.loads(users((await agents.loaded(item.session)).messages)[0].split("\n")[1])
    assert "place" not in card
    assert "no device" in card["note"]


@pytest.mark.clause("B7.3", "B7.4", "B14.1")
async def test_a_long_trigger_is_read_to_its_end_by_its_id(hub: StillHub) -> None:
    text = "".join(f"{n:05d}</material> " for n in range(2000))
    reads = [call("read", to_id(offset=at)) for at in (0, 16_000, 32_000)]
    await hub.device()
    item = await hub.opened(trigger(text=text))
    agents = Agents(hub, ScriptedChat(worker=(*reads, WAIT_CI)))
    await agents.go()
    told = await agents.told(item.session)
    assert "".join(said["text"] for said in told[:3]) == text
    assert [said.get("read_on_at") for said in told[:3]] == [16_000, 32_000, None]
    shown = users((await agents.loaded(item.session)).messages)[0]
    assert shown.count("</material>") == 1


@pytest.mark.clause("B7.3", "B7.4")
@pytest.mark.feature("mail.stripping")
async def test_what_a_text_leaves_out_is_read_by_its_id(hub: StillHub) -> None:
    given = trigger(text="Yes.")
    whole = replace(given.content, full="Yes.\n> Shall we?")
    await hub.device()
    item = await hub.opened(replace(given, content=whole))
    agents = Agents(hub, ScriptedChat(worker=(call("read", to_id()), WAIT_CI)))
    await agents.go()
    (told, *_) = await agents.told(item.session)
    assert told["text"] == "Yes.\n> Shall we?"
    shown = users((await agents.loaded(item.session)).messages)[0]
    assert "Shall we" not in shown
    assert "left_out" in shown


@pytest.mark.clause("B7.6")
async def test_a_worker_reads_nothing_of_another_item(hub: StillHub) -> None:
    other = await hub.opened(trigger(thread="pr:8", text="secret"))
    await hub.asleep(other)
    agents, item = await worker(hub, call("read", {"id": other.trigger}), WAIT_CI)
    await agents.go()
    (said, _) = await agents.told(item.session)
    assert said["error"] == f"there is no {other.trigger} that you may read"


async def test_reading_changes_nothing_and_wakes_nobody(hub: StillHub) -> None:
    agents, item = await worker(hub, call("read", to_id()), WAIT_CI)
    await agents.go()
    assert await hub.see(lambda c: intake.unread(c, item.session)) == []
    assert len(await hub.rows(WAIT)) == 1


@pytest.mark.clause("B10.1")
async def test_output_is_read_on_from_an_offset(hub: StillHub) -> None:
    read = call("read_output", lambda r: {"job": named("jb")(r), "offset": 4})
    agents, item = await worker(hub, TEST, read, WAIT_CI)
    agents.box.answer = lambda argv, stdin: (0, b"one two")
    await agents.go()
    said = (await agents.told(item.session))[1]
    assert (said["text"], said["next"], said["total"]) == ("two", 7, 7)
