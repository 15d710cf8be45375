"""Children on a real database: opened by a worker, bounded, and heard of when they end."""

from __future__ import annotations

import json

import pytest

from fixtures.agents import DONE, TEST, Agents, Say, ScriptedChat, call, complete, named, worker
from fixtures.still_hub import StillHub, decided, trigger
from upright.api import EffectClass
from upright.core.bounds import DEFAULT
from upright.core.mandate import Mandate, Trust
from upright.core.transcript import Role
from upright.core.work import WorkItem, WorkState
from upright.engine.ports import ChatRequest
from upright.store import (
    codec,
    endings,
    intake,
    oracle,
    oversight,
    people,
    relations,
    views_work,
    work,
)
from upright.store.errors import NotNowError
from upright.store.relations import RelationKind, Spawning
from upright.store.tables import RELATION, REQUEST, SESSION, WAIT, WORK
from upright.store.unit import Unit


async def child_of(hub: StillHub, item: WorkItem, goal: str = "a part") -> WorkItem:
    asked = Spawning(goal=goal, criteria=("it works",), taint=Trust.CONTACT)
    return await hub.do(lambda u: relations.spawn(u, work.read(u.c, item.id), asked))


async def inbox(hub: StillHub, item: WorkItem) -> list[str]:
    unread = await hub.see(lambda c: intake.unread(c, item.session))
    return [one.trigger.kind for one in unread]


# ------------------------------------------------------------------ opening
@pytest.mark.clause("B11.12", "B14.2")
async def test_a_child_has_a_worker_and_no_more_rights_than_its_parent(hub: StillHub) -> None:
    item = await hub.opened()
    child = await child_of(hub, item)
    assert (child.mandate.trust, child.destination) == (Trust.CONTACT, None)
    assert child.mandate.deny == {EffectClass.REPLY, EffectClass.REACH}
    session = await hub.row(SESSION, id=child.session)
    assert (session["taint"], session["work_id"]) == ("contact", child.id)
    assert session["ready_at_ms"] is not None
    assert await inbox(hub, child) == ["work.asked"]
    assert child.thread != item.thread
    (row,) = await hub.rows(RELATION)
    assert (row["work_id"], row["kind"], row["other_id"]) == (child.id, "child_of", item.id)
    assert await hub.see(lambda c: work.read(c, child.id)) == child


def test_a_mandate_is_only_ever_narrowed() -> None:
    wide = Mandate(given_by="boss", trust=Trust.MEMBER, reach_allowed=True, acceptance=True)
    narrow = relations.narrowed(wide, Trust.OPERATOR)
    assert (narrow.trust, narrow.reach_allowed, narrow.acceptance) == (Trust.MEMBER, False, False)


@pytest.mark.clause("B11.12")
async def test_children_are_bounded_in_depth_and_number(hub: StillHub) -> None:
    item = await hub.opened()
    at = item
    for _ in range(DEFAULT.depth):
        at = await child_of(hub, at)
    with pytest.raises(NotNowError, match="generations"):
        await child_of(hub, at)
    for _ in range(DEFAULT.children - 1):
        await child_of(hub, item)
    with pytest.raises(NotNowError, match="children"):
        await child_of(hub, item)
    assert len(await hub.rows(WORK)) == 1 + DEFAULT.depth + DEFAULT.children - 1


@pytest.mark.clause("B11.12")
async def test_items_relate_both_ways_and_once(hub: StillHub) -> None:
    one = await hub.opened()
    other = await hub.opened(trigger(thread="pr:8"))
    for _ in range(2):
        await hub.do(lambda u: relations.relate(u, one.id, RelationKind.BLOCKS, other.id))
    seen = await hub.see(lambda c: (relations.of(c, one.id), relations.of(c, other.id)))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 1
    with pytest.raises(NotNowError):
        await hub.do(lambda u: relations.relate(u, one.id, RelationKind.BLOCKS, one.id))


@pytest.mark.clause("B11.12")
async def test_the_router_notes_that_one_item_follows_another(hub: StillHub) -> None:
    one, other = await hub.opened(), await hub.opened(trigger(thread="pr:8"))
    for item in (one, other):
        await hub.asleep(item)

    def relates(request: ChatRequest) -> Say:
        given = {"work": one.id, "kind": "follows", "other": other.id}
        wrong = {**given, "other": "wk_nobody"}
        step = sum(message.role is Role.ASSISTANT for message in request.messages)
        return Say(calls=(("relate", given), ("relate", wrong))) if step == 0 else Say("Noted.")

    agents = Agents(hub, ScriptedChat(router=[relates]))
    router = await hub.router()
    await hub.do(lambda u: people.say(u, router, "the first follows the second"))
    await agents.go()
    noted, refused = await agents.told(router)
    assert noted == {"work": one.id, "relations": 1}
    assert "wk_nobody" in refused["error"]
    shown = await hub.see(lambda c: views_work.work(c, other.id))
    assert [(row["kind"], row["work_id"]) for row in shown["relations"]] == [("follows", one.id)]


# ------------------------------------------------------------------ yielding
async def yielding(hub: StillHub) -> tuple[WorkItem, WorkItem]:
    """Let a parent rest until its child has ended."""
    item = await hub.opened()
    child = await child_of(hub, item)
    await hub.do(lambda u: relations.wait_for(u, work.read(u.c, item.id), child))
    await hub.asleep(item)
    return item, child


async def end(hub: StillHub, child: WorkItem, how: str) -> None:
    def unit(u: Unit) -> None:
        if how == "cancelled":
            endings.cancel(u, work.read(u.c, child.id), "nobody wants it")
        else:
            u.c.execute(WORK.update().where(WORK.c.id == child.id).values(state="completing"))
            endings.completed(u, work.read(u.c, child.id))

    await hub.do(unit)


@pytest.mark.clause("B11.2")
@pytest.mark.parametrize("how", ["completed", "cancelled"])
async def test_a_parent_that_yielded_resumes_however_its_child_ends(
    hub: StillHub, how: str
) -> None:
    item, child = await yielding(hub)
    assert (await hub.item(item)).state is WorkState.YIELDED
    assert await hub.see(oracle.stalled) == []
    await end(hub, child, how)
    assert await inbox(hub, item) == [f"child.{how}"]
    (told,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert json.loads(told.trigger.content.text)["state"] == how
    assert told.trust is Trust.CONTACT
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None
    assert [row["state"] for row in await hub.rows(WAIT, work_id=item.id)] == ["matched"]


@pytest.mark.clause("B11.5")
async def test_a_child_that_has_ended_is_not_waited_for(hub: StillHub) -> None:
    item = await hub.opened()
    child = await child_of(hub, item)
    other = await hub.opened(trigger(thread="pr:8"))
    with pytest.raises(NotNowError, match="no child"):
        await hub.do(lambda u: relations.wait_for(u, work.read(u.c, other.id), child))
    await end(hub, child, "completed")
    with pytest.raises(NotNowError, match="completed already"):
        await hub.do(
            lambda u: relations.wait_for(u, work.read(u.c, item.id), work.read(u.c, child.id))
        )


@pytest.mark.clause("B11.8")
async def test_an_item_that_yields_to_what_has_ended_is_stalled(hub: StillHub) -> None:
    item, child = await yielding(hub)
    over = WORK.update().where(WORK.c.id == child.id).values(state="completed")
    await hub.do(lambda u: u.c.execute(over).rowcount)
    (found,) = await hub.see(oracle.stalled)
    assert (found.id, found.state) == (item.id, "yielded")
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))


@pytest.mark.clause("B11.2", "B8.4")
async def test_a_worker_spawns_yields_and_goes_on_with_what_its_child_found(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub)
    parent = (
        call("spawn_child", {"goal": "look", "criteria": ["tests pass"], "yield": True}),
        complete("failed", tests_pass=named("tr")),
    )

    def says(request: ChatRequest) -> Say:
        step = sum(message.role is Role.ASSISTANT for message in request.messages)
        return (parent if request.session == item.session else (TEST, DONE))[step]

    agents.chat = ScriptedChat(worker=[says])
    await agents.go()
    states = {row["state"] for row in await hub.rows(WORK)}
    assert states == {"completed"}
    assert await hub.asleep_for_ever() == []
    assert any("kind=child.completed" in prompt[-1] for prompt in agents.prompts())


# ------------------------------------------------------------------ acceptance
async def completing(hub: StillHub) -> tuple[Agents, WorkItem]:
    """Let a worker claim to be done whose item a person must accept."""
    agents, item = await worker(hub, TEST, DONE, TEST, DONE)
    asks = Mandate(given_by="boss", trust=Trust.MEMBER, acceptance=True)
    await hub.do(
        lambda u: (
            u.c.execute(
                WORK.update()
                .where(WORK.c.id == item.id)
                .values(mandate_json=codec.MANDATE.dump(asks))
            ).rowcount
        )
    )
    await agents.go()
    return agents, item


@pytest.mark.clause("B11.11")
async def test_what_a_person_must_accept_is_completing_until_one_does(hub: StillHub) -> None:
    _, item = await completing(hub)
    assert (await hub.item(item)).state is WorkState.COMPLETING
    request = await hub.row(REQUEST)
    assert (request["kind"], request["state"]) == ("acceptance", "asked")
    assert await hub.asleep_for_ever() == []
    await hub.do(lambda u: decided(u, request["id"], "ann"))
    assert (await hub.item(item)).state is WorkState.COMPLETED
    assert (await hub.row(SESSION, id=item.session))["ended_at_ms"] is not None


@pytest.mark.clause("B11.11")
async def test_what_a_person_sends_back_goes_on_with_their_word(hub: StillHub) -> None:
    agents, item = await completing(hub)
    request = await hub.row(REQUEST)
    await hub.do(lambda u: people.answer(u, request["id"], "the docs are missing", "ann"))
    assert (await hub.item(item)).state is WorkState.RUNNABLE
    (told,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert (told.trigger.kind, told.trigger.content.text) == (
        "work.sent_back",
        "the docs are missing",
    )
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETING
    with pytest.raises(NotNowError):
        await hub.do(lambda u: decided(u, request["id"], "bob"))
