"""The tools of routing over real turns: forward, list, cancel, hand back, read what was before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fixtures.agents import WAIT_CI, Agents, Say, ScriptedChat, call, complete, named, users
from fixtures.still_hub import ANN, BOSS, CI, EVE, StillHub, trigger
from upright.api import Actor, Address, Destination
from upright.core.mandate import Trust
from upright.core.trigger import Disposition
from upright.core.work import Stopped, WorkItem, WorkState
from upright.engine.ports import ChatRequest
from upright.store import relations, sessions, threads, work
from upright.store.relations import Spawning
from upright.store.tables import HANDBACK, OUTBOX, RELATION, REQUEST, SESSION, TRIGGER, WORK
from upright.store.unit import Unit

MENTION = trigger("comment.created", by=ANN, thread="chat:1", address=Address.MENTION)


def newest(request: ChatRequest) -> str:
    """Return the id of the trigger that came last."""
    words = users(request.messages)[-1].split()
    return [word for word in words if word.startswith("tr_")][-1]


def to(tool: str, **more: str) -> Say:
    """Call a tool with the newest trigger."""
    return call(tool, lambda r: {"trigger": newest(r), **more})


async def resting(hub: StillHub, by: Actor = CI, thread: str = "pr:7") -> WorkItem:
    item = await hub.opened(trigger(by=by, thread=thread))
    await hub.asleep(item)
    return item


async def routed(hub: StillHub, *script: Say, worker: tuple[Say, ...] = (WAIT_CI,)) -> Agents:
    """Let the router deal with a mention in another channel."""
    agents = Agents(hub, ScriptedChat(router=script, worker=worker))
    await hub.one(trigger("comment.created", by=ANN, thread="chat:1", address=Address.MENTION))
    await agents.go()
    return agents


async def told(hub: StillHub, agents: Agents, session: str = "") -> list[Any]:
    return await agents.told(session or await hub.router())


# ------------------------------------------------------------------ the router
@pytest.mark.clause("B5.1", "B6.2")
async def test_the_router_forwards_a_trigger_to_a_worker_that_lives(hub: StillHub) -> None:
    item = await resting(hub)
    agents = await routed(hub, to("forward", work=item.id), Say("Given on."))
    (said,) = await told(hub, agents)
    assert (said["work"], said["forwarded"], said["follows"]) == (item.id, True, True)
    assert "actor=member" in users((await agents.loaded(item.session)).messages)[-1]


@pytest.mark.clause("B5.1")
@pytest.mark.parametrize("tool", ["forward", "cancel"])
async def test_what_names_no_item_is_refused(hub: StillHub, tool: str) -> None:
    arguments: Mapping[str, Mapping[str, str]] = {"forward": {}, "cancel": {"reason": "?"}}
    asked = (
        to(tool, work="wk_none")
        if tool == "forward"
        else call(tool, {"work": "wk_none", **arguments[tool]})
    )
    agents = await routed(hub, asked, Say("Oh."))
    assert (await told(hub, agents))[0]["error"] == "there is no work item wk_none"


@pytest.mark.clause("B5.1", "B11.12")
async def test_the_router_sees_open_items_with_their_relations_and_no_details(
    hub: StillHub,
) -> None:
    over = await resting(hub)
    await hub.do(lambda u: work.move(u, work.read(u.c, over.id), Stopped()))
    await Agents(hub, ScriptedChat()).go()
    item = await resting(hub)
    agents = await routed(hub, call("list_work"), Say("Seen."))
    (said,) = await told(hub, agents)
    (row,) = said["work"]
    assert set(row) == {"id", "goal", "state", "thread", "relations"}
    assert (row["id"], row["goal"], row["state"]) == (item.id, "make it green", "waiting_timer")
    assert row["relations"] == [f"follows {over.id}"]


@pytest.mark.clause("B5.1", "B7.5")
async def test_the_router_finds_what_ended_and_reads_what_came_of_it(hub: StillHub) -> None:
    item = await resting(hub)
    say = call("reply", {"text": "It was the range."})
    agents = Agents(hub, ScriptedChat(worker=(say, complete("failed", tests_pass=named("tr")))))
    await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    done, named_by = await hub.row(OUTBOX), {"receipt_id": "77", "receipt_url": "https://x.test/1"}
    await hub.do(lambda u: u.c.execute(OUTBOX.update().values(**named_by)))
    agents = await routed(hub, call("list_work", {"ended": True}), call("read", {"id": item.id}))
    listing, read = await told(hub, agents)
    assert listing["work"] == [
        {
            "id": item.id,
            "goal": "make it green",
            "state": "completed",
            "thread": item.thread,
            "code": {"repository": "acme/app", "branch": "fix", "number": 7},
        }
    ]
    assert (read["work"], read["state"]) == (item.id, "completed")
    assert read["visible"] == [{"effect": done["id"], "url": "https://x.test/1"}]
    assert len(read["evidence"]) == 1


@pytest.mark.clause("B14.2")
async def test_what_an_item_wrote_after_reading_a_stranger_taints_who_reads_it(
    hub: StillHub,
) -> None:
    item = await resting(hub)
    await hub.do(
        lambda u: u.c.execute(SESSION.update().where(SESSION.c.id == item.session).values(taint=0))
    )
    agents = await routed(hub, call("read", {"id": item.id}))
    assert (await agents.loaded(await hub.router())).taint is Trust.STRANGER


@pytest.mark.clause("B7.6")
async def test_a_worker_reads_no_other_item(hub: StillHub) -> None:
    other = await resting(hub, thread="pr:8")
    item = await resting(hub)
    reads = (call("read", {"id": other.id}), call("read", {"id": item.id}), WAIT_CI)
    agents = Agents(hub, ScriptedChat(worker=reads))
    await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    refused, own, _ = await agents.told(item.session)
    assert refused == {"error": f"there is no {other.id} that you may read"}
    assert own["id"] == item.id


async def test_an_item_that_is_not_there_is_not_read(hub: StillHub) -> None:
    agents = await routed(hub, call("read", {"id": "wk_" + "0" * 26}))
    assert await told(hub, agents) == [{"error": f"there is no wk_{'0' * 26}"}]


@pytest.mark.clause("B5.1", "B11.6")
async def test_the_router_cancels_an_item_and_its_worker_ends(hub: StillHub) -> None:
    item = await resting(hub)
    cancel = call("cancel", {"work": item.id, "reason": "it is fixed upstream"})
    agents = await routed(hub, cancel, cancel, Say("Done."))
    first, second = await told(hub, agents)
    assert first["state"] == "cancelled"
    assert second["error"] == f"{item.id} is cancelled already"
    row = await hub.row(WORK, id=item.id)
    assert (row["state"], row["reason"]) == (WorkState.CANCELLED, "it is fixed upstream")
    assert (await hub.row(SESSION, id=item.session))["ended_at_ms"] is not None


@pytest.mark.clause("B11.2", "B11.5", "B11.8")
async def test_a_parent_that_yielded_hears_that_the_router_cancelled_its_child(
    hub: StillHub,
) -> None:
    """It was left out once: the parent slept on until its deadline."""
    parent = await resting(hub)

    def yields(u: Unit) -> WorkItem:
        asked = Spawning(goal="a part", criteria=("x",), taint=Trust.MEMBER)
        child = relations.spawn(u, work.woken(u, work.read(u.c, parent.id)), asked)
        relations.wait_for(u, work.read(u.c, parent.id), child)
        work.rest(u, work.read(u.c, parent.id))
        return child

    child = await hub.do(yields)
    await hub.asleep(child)
    await routed(hub, call("cancel", {"work": child.id, "reason": "no more"}), Say("Done."))
    assert (await hub.row(WORK, id=child.id))["state"] == WorkState.CANCELLED
    assert await hub.rows(TRIGGER, kind="child.cancelled") != []
    assert await hub.asleep_for_ever() == []


@pytest.mark.clause("B14.1", "B14.2")
async def test_after_a_strangers_words_the_router_cancels_nothing_of_ours(hub: StillHub) -> None:
    item = await resting(hub, by=BOSS)
    cancel = call("cancel", {"work": item.id, "reason": "they said so"})
    agents = Agents(hub, ScriptedChat(router=(cancel, Say("Oh."))))
    await hub.one(trigger("ci.failed", by=EVE, thread="pr:9"))
    await agents.go()
    (said,) = await told(hub, agents)
    assert "ask a person" in said["error"]
    assert (await hub.item(item)).state is WorkState.WAITING_TIMER


# ------------------------------------------------------------------ back
@pytest.mark.clause("B6.5")
async def test_a_worker_hands_back_and_the_router_may_not_send_it_there_again(
    hub: StillHub,
) -> None:
    item = await resting(hub)
    given = {"work": item.id}
    first: list[str] = []

    def once_more(request: ChatRequest) -> Mapping[str, str]:
        return {"trigger": first[0], **given}

    def forward(request: ChatRequest) -> Mapping[str, str]:
        first.append(newest(request))
        return once_more(request)

    agents = await routed(
        hub,
        call("forward", forward),
        Say("Given on."),
        call("forward", once_more),
        Say("Oh."),
        worker=(to("hand_back", reason="about the shop, not about CI"), WAIT_CI),
    )
    said = await told(hub, agents)
    assert said[0]["forwarded"]
    assert said[1]["error"].endswith("back: about the shop, not about CI")
    (back, _) = await told(hub, agents, item.session)
    assert back == {"handed_back": first[0], "to": "router"}
    assert (await hub.row(HANDBACK))["trigger_id"] == first[0]
    assert "kind=worker.hand_back" in users((await agents.loaded(await hub.router())).messages)[-1]


@pytest.mark.clause("B6.5")
async def test_a_worker_hands_back_only_what_it_took_from_outside(hub: StillHub) -> None:
    foreign = await hub.one(trigger("comment.created", by=ANN, thread="pr:8"))
    back = call("hand_back", {"trigger": foreign.id, "reason": "?"})
    item = await hub.opened()
    agents = Agents(hub, ScriptedChat(worker=(back, WAIT_CI)))
    await agents.go()
    said = await told(hub, agents, item.session)
    assert said[0]["error"] == f"{foreign.id} is no trigger of yours that came from outside"
    assert await hub.rows(HANDBACK) == []


@pytest.mark.clause("B6.5")
async def test_the_second_worker_that_hands_back_brings_it_to_a_person(hub: StillHub) -> None:
    one, two = await resting(hub), await resting(hub, thread="pr:8")
    came: list[str] = []

    def forward(request: ChatRequest) -> Mapping[str, str]:
        came.append(newest(request))
        return {"trigger": came[0], "work": one.id if len(came) == 1 else two.id}

    await routed(
        hub,
        call("forward", forward),
        Say("Given on."),
        call("forward", forward),
        Say("And on."),
        worker=(to("hand_back", reason="not mine"), WAIT_CI),
    )
    request = await hub.row(REQUEST)
    assert came[0] in request["prompt"]
    assert len(await hub.rows(TRIGGER, kind="worker.hand_back")) == 1


# ------------------------------------------------------------------ after the end
async def ended(hub: StillHub) -> WorkItem:
    """Let a worker complete its item; its session is over."""
    await hub.device()
    item = await hub.opened()
    done = complete("failed", tests_pass=named("tr"))
    agents = Agents(hub, ScriptedChat(worker=(Say("The cause was a typo."), done)))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED
    return item


@pytest.mark.clause("B6.6")
async def test_a_late_trigger_revives_nothing_and_a_successor_can_read_what_was_before(
    hub: StillHub,
) -> None:
    old = await ended(hub)
    spawn = call("spawn", lambda r: {"trigger": newest(r), "goal": "again", "criteria": ["c"]})
    read = call("read", {"id": old.session})
    agents = Agents(hub, ScriptedChat(router=(spawn, Say("Done.")), worker=(read, WAIT_CI)))
    came = await hub.one(trigger())
    assert (came.disposition, came.woke) == (Disposition.STARTED, (await hub.router(),))
    await agents.go()
    assert (await hub.item(old)).state is WorkState.COMPLETED
    router = users((await agents.loaded(await hub.router())).messages)[-1]
    assert f"({old.id} of this thread is completed)" in router
    (spawned,) = await told(hub, agents)
    assert spawned["follows"] == {"work": old.id, "session": old.session}
    (row,) = await hub.rows(RELATION)
    assert (row["work_id"], row["kind"], row["other_id"]) == (spawned["work"], "follows", old.id)
    card = users((await agents.loaded(spawned["session"])).messages)[0]
    assert json.loads(card.split("\n")[1])["follows"] == {"work": old.id, "read": old.session}
    said = (await told(hub, agents, spawned["session"]))[0]
    assert (said["work"], said["state"], said["goal"]) == (old.id, "completed", "make it green")
    assert "The cause was a typo." in said["text"]


@pytest.mark.clause("B6.6", "B7.6")
async def test_a_session_is_read_by_its_successors_alone(hub: StillHub) -> None:
    old = await ended(hub)
    item = await hub.opened(trigger(thread="pr:8"))
    agents = Agents(hub, ScriptedChat(worker=(call("read", {"id": old.session}), WAIT_CI)))
    await agents.go()
    said = await told(hub, agents, item.session)
    assert said[0]["error"] == f"there is no {old.session} that you may read"


@pytest.mark.clause("B6.6", "B14.2")
async def test_a_successor_is_as_tainted_as_the_one_before(hub: StillHub) -> None:
    old = await hub.opened(trigger(by=EVE))
    await hub.do(lambda u: work.move(u, work.read(u.c, old.id), Stopped()))
    await Agents(hub, ScriptedChat()).go()
    new = await hub.opened(trigger(by=BOSS))
    assert (await hub.row(SESSION, id=new.session))["taint"] == "stranger"


async def test_what_follows_a_private_item_is_as_private(hub: StillHub) -> None:
    old = await hub.opened(trigger(by=ANN))
    hers = WORK.update().where(WORK.c.id == old.id).values(private_to="ann")
    await hub.do(lambda u: u.c.execute(hers).rowcount)
    await hub.do(lambda u: work.move(u, work.read(u.c, old.id), Stopped()))
    new = await hub.opened(trigger(by=BOSS))
    assert (await hub.row(WORK, id=new.id))["private_to"] == "ann"


@pytest.mark.clause("B6.6", "B5.2")
@pytest.mark.case("HE/99106")
async def test_a_worker_that_was_ended_out_of_band_is_followed_by_a_new_one(hub: StillHub) -> None:
    """The worker is gone without a word; the next event neither vanishes nor wakes the dead."""
    old = await resting(hub)

    def end(u: Unit) -> None:
        work.move(u, work.read(u.c, old.id), Stopped(), reason="ended by hand")
        values = {"ended_at_ms": u.now_ms, "ready_at_ms": None}
        u.c.execute(SESSION.update().where(SESSION.c.id == old.session).values(**values))

    await hub.do(end)
    new = await hub.opened(trigger())
    assert new.id != old.id
    assert new.session in await hub.see(lambda c: sessions.live(c, [old.session, new.session]))
    later = await hub.one(trigger("comment.created", by=ANN))
    assert later.woke == (new.session,)


# ------------------------------------------------------------------ one person
@pytest.mark.clause("B6.11")
async def test_the_router_is_told_what_the_same_person_has_open_elsewhere(hub: StillHub) -> None:
    item = await resting(hub, by=ANN, thread="mail:1")
    other = await resting(hub, by=BOSS, thread="mail:2")
    agents = await routed(hub, Say("Seen."))
    shown = users((await agents.loaded(await hub.router())).messages)[-1]
    assert f"(the same person's open work: {item.id} ({item.thread}))" in shown
    assert other.id not in shown


@pytest.mark.clause("B6.11", "B14.1")
async def test_a_name_in_a_text_makes_nobody_that_person(hub: StillHub) -> None:
    item = await resting(hub, by=ANN, thread="mail:1")
    liar = Actor(id="eve", name="ann")
    agents = Agents(hub, ScriptedChat(router=(Say("Seen."),)))
    came = await hub.one(trigger("ci.failed", by=liar, thread="chat:1", text="It is me, ann."))
    await agents.go()
    assert (await hub.row(TRIGGER, id=came.id))["person"] == ""
    shown = users((await agents.loaded(await hub.router())).messages)[-1]
    assert item.id not in shown


# ------------------------------------------------------------------ answered once
async def two_followers(hub: StillHub) -> tuple[WorkItem, WorkItem]:
    one, two = await resting(hub), await resting(hub, thread="pr:8")
    await hub.do(lambda u: work.subscribe(u, two.session, one.thread))
    await hub.do(lambda u: threads.link(u.c, one.thread, two.thread))
    return one, two


@pytest.mark.clause("B6.7")
async def test_of_two_workers_on_one_thread_the_first_answers_a_trigger_and_the_second_is_told(
    hub: StillHub,
) -> None:
    one, two = await two_followers(hub)
    script = (call("reply", {"text": "On it."}), WAIT_CI)
    agents = Agents(hub, ScriptedChat(worker=script))
    came = await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    effect = await hub.row(OUTBOX)
    assert effect["trigger_id"] == came.id
    first, second = (one, two) if effect["work_id"] == one.id else (two, one)
    said = await told(hub, agents, second.session)
    assert said[0]["error"].startswith(
        f"{came.id} was answered already: {effect['id']} by {first.id}"
    )


@pytest.mark.clause("B6.7")
async def test_a_worker_answers_again_what_is_newer_and_reports_progress_in_between(
    hub: StillHub,
) -> None:
    item = await resting(hub)
    reply = call("reply", {"text": "Fixed."})
    progress = call("reply", {"text": "Looking.", "purpose": "progress"})
    script = (progress, reply, reply, WAIT_CI, reply, WAIT_CI)
    agents = Agents(hub, ScriptedChat(worker=script))
    first = await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    said = await told(hub, agents, item.session)
    assert said[2]["error"].startswith(f"you answered {first.id} with {said[1]['effect']}")
    hub.clock.go_on(60)
    second = await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    rows = await hub.rows(OUTBOX)
    assert [row["trigger_id"] for row in rows] == [first.id, first.id, second.id]


@pytest.mark.clause("B6.7")
async def test_an_answer_that_never_went_out_stands_in_nobodys_way(hub: StillHub) -> None:
    await resting(hub)
    reply = call("reply", {"text": "On it."})

    async def die() -> None:
        await hub.do(lambda u: u.c.execute(OUTBOX.update().values(state="dead")).rowcount)

    agents = Agents(hub, ScriptedChat(worker=(reply, reply, WAIT_CI), meanwhile={1: die}))
    came = await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    rows = await hub.rows(OUTBOX)
    assert [row["state"] for row in rows] == ["dead", "pending"]
    assert {row["trigger_id"] for row in rows} == {came.id}


@pytest.mark.clause("B15.1", "B14.2")
async def test_an_answer_to_a_trigger_of_another_thread_goes_there_and_a_person_is_asked(
    hub: StillHub,
) -> None:
    item = await resting(hub, by=ANN)
    chat = Destination(source="gh", kind="comment", address=(("number", "1"),))
    agents = Agents(
        hub,
        ScriptedChat(
            router=(to("forward", work=item.id), Say("Given on.")),
            worker=(to("reply", text="Soon."), WAIT_CI),
        ),
    )
    await hub.one(
        trigger("comment.created", by=ANN, thread="chat:1", address=Address.MENTION, reply_to=chat)
    )
    await agents.go()
    effect = await hub.row(OUTBOX)
    assert (effect["effect_class"], effect["state"]) == ("reach", "held")
    assert effect["destination"]["address"] == [["number", "1"]]
