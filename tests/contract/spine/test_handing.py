"""Forwarding and handing back on a real database: one owner, bounded, in order (B6.5)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from fixtures.still_hub import ANN, CAL, EVE, StillHub, trigger
from upright.agent import settle, steps
from upright.core.compaction import ContextBounds
from upright.core.ids import ThreadId
from upright.core.mandate import Trust
from upright.core.turn import Ending, Limits
from upright.core.wait import WaitKind, WaitState
from upright.core.work import Stopped, WorkItem
from upright.store import follows, handing, intake, people, waits, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.intake import Accepted
from upright.store.tables import DELIVERY, REQUEST, SESSION, SUBSCRIPTION, TRIGGER, WAIT
from upright.store.unit import Unit

ELSEWHERE = "chat:1"


async def inbox(hub: StillHub, session: str) -> list[str]:
    return [one.id for one in await hub.see(lambda c: intake.unread(c, session))]


async def worker(hub: StillHub, thread: str) -> WorkItem:
    """Open an item on a thread, whose worker rests."""
    item = await hub.opened(trigger(thread=thread))
    await hub.asleep(item)
    return item


async def to_router(hub: StillHub, *, thread: str = ELSEWHERE) -> Accepted:
    """Let something come that the router must place."""
    return await hub.one(trigger("ci.failed", by=EVE, thread=thread, reply_to=None))


async def forward(hub: StillHub, came: Accepted, item: WorkItem) -> handing.Forwarded:
    router = await hub.router()

    def unit(u: Unit) -> handing.Forwarded:
        stored = intake.read(u.c, came.id)
        assert stored is not None
        return handing.forward(u, stored, work.read(u.c, item.id), router)

    return await hub.do(unit)


async def take(hub: StillHub, session: str) -> None:
    await hub.do(lambda u: intake.taken(u.c, session, intake.unread(u.c, session), 1))


async def back(hub: StillHub, came: Accepted, item: WorkItem) -> handing.HandedBack:
    """Let a worker take what it has and hand one trigger back."""
    await take(hub, item.session)

    def unit(u: Unit) -> handing.HandedBack:
        stored = intake.read(u.c, came.id)
        assert stored is not None
        mine = work.read(u.c, item.id)
        given = handing.Back(item=mine, trigger=stored, reason="not mine", trust=Trust.MEMBER)
        return handing.hand_back(u, given)

    return await hub.do(unit)


# ------------------------------------------------------------------ forward
@pytest.mark.clause("B5.1", "B6.2")
async def test_a_forwarded_trigger_wakes_its_worker_which_follows_that_thread_from_then_on(
    hub: StillHub,
) -> None:
    item = await worker(hub, "pr:7")
    came = await to_router(hub)
    done = await forward(hub, came, item)
    assert (done.given, done.follows) == (True, True)
    assert await inbox(hub, item.session) == [came.id]
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None
    later = await hub.one(trigger("comment.created", by=EVE, thread=ELSEWHERE))
    assert later.woke == (item.session,)


@pytest.mark.clause("B6.3", "B6.2")
async def test_what_waits_of_that_thread_with_the_router_goes_along_in_its_order(
    hub: StillHub,
) -> None:
    item = await worker(hub, "pr:7")
    first, second = await to_router(hub), await to_router(hub)
    other = await to_router(hub, thread="chat:2")
    await forward(hub, first, item)
    assert await inbox(hub, item.session) == [first.id, second.id]
    assert await inbox(hub, await hub.router()) == [first.id, other.id]


@pytest.mark.clause("B6.2")
async def test_forwarding_on_a_thread_of_another_worker_makes_nobody_follow_it(
    hub: StillHub,
) -> None:
    item, other = await worker(hub, "pr:7"), await worker(hub, "pr:8")
    came = await hub.one(trigger("comment.created", by=ANN, thread="pr:8"))
    router = await hub.router()
    row = {"session_id": router, "trigger_id": came.id, "wake": False, "strategy": "queue"}
    await hub.do(lambda u: u.c.execute(DELIVERY.insert(), row).rowcount)
    assert (await forward(hub, came, item)).follows is False
    assert await inbox(hub, item.session) == await inbox(hub, other.session) == [came.id]
    assert len(await hub.rows(SUBSCRIPTION, session_id=item.session)) == 1


@pytest.mark.clause("B11.4")
async def test_a_forwarded_trigger_matches_the_workers_wait_for_that_thread(hub: StillHub) -> None:
    item = await worker(hub, "pr:7")
    came = await to_router(hub)
    thread = (await hub.row(TRIGGER, id=came.id))["thread_id"]
    asked = waits.Asked(kind=WaitKind.EXTERNAL, ref=thread, why="an answer")
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await forward(hub, came, item)
    assert [row["state"] for row in await hub.rows(WAIT, kind="external")] == [WaitState.MATCHED]


@pytest.mark.clause("B6.6")
async def test_nothing_is_forwarded_to_an_item_that_is_over(hub: StillHub) -> None:
    item = await worker(hub, "pr:7")
    await hub.do(lambda u: work.move(u, work.read(u.c, item.id), Stopped()))
    came = await to_router(hub)
    with pytest.raises(NotNowError, match="spawn a new item"):
        await forward(hub, came, item)
    assert await inbox(hub, item.session) == []


# ------------------------------------------------------------------ back
@pytest.mark.clause("B6.5")
async def test_what_is_handed_back_reaches_the_router_with_the_reason(hub: StillHub) -> None:
    item = await worker(hub, "pr:7")
    came = await to_router(hub)
    router = await hub.router()
    await take(hub, router)
    await forward(hub, came, item)
    done = await back(hub, came, item)
    assert (done.times, done.request) == (1, None)
    (notice,) = await hub.see(lambda c: intake.unread(c, router))
    assert notice.trigger.kind == "worker.hand_back"
    assert notice.trigger.content.text == "not mine"
    assert ("trigger", came.id) in notice.trigger.context.facts
    assert notice.trust is Trust.STRANGER  # of whoever wrote what it speaks of
    assert (await hub.row(SESSION, id=router))["ready_at_ms"] is not None


@pytest.mark.clause("B6.5")
async def test_a_worker_is_not_given_again_what_it_gave_back(hub: StillHub) -> None:
    item = await worker(hub, "pr:7")
    came = await to_router(hub)
    await forward(hub, came, item)
    await back(hub, came, item)
    with pytest.raises(NotNowError, match=r"gave .* back: not mine"):
        await forward(hub, came, item)
    with pytest.raises(NotNowError, match="given it back already"):
        await back(hub, came, item)
    assert await hub.rows(REQUEST) == []


@pytest.mark.clause("B6.5")
async def test_what_two_workers_gave_back_goes_to_a_person_and_wakes_no_router(
    hub: StillHub,
) -> None:
    one, two = await worker(hub, "pr:7"), await worker(hub, "pr:8")
    came = await to_router(hub)
    await forward(hub, came, one)
    await back(hub, came, one)
    await forward(hub, came, two)
    done = await back(hub, came, two)
    request = await hub.row(REQUEST)
    assert (done.times, done.request) == (2, request["id"])
    assert came.id in request["prompt"]
    assert request["prompt"].count("not mine") == 2
    kinds = [row["kind"] for row in await hub.rows(TRIGGER, source="hub")]
    assert kinds == ["worker.hand_back"]
    router = await hub.router()
    await take(hub, router)
    await hub.do(lambda u: people.answer(u, request["id"], "drop it", "ann"))
    assert len(await inbox(hub, router)) == 1


@pytest.mark.clause("B6.5")
async def test_a_thread_that_was_forwarded_is_not_followed_any_more_once_it_is_handed_back(
    hub: StillHub,
) -> None:
    item = await worker(hub, "pr:7")
    came = await to_router(hub)
    await forward(hub, came, item)
    await back(hub, came, item)
    later = await to_router(hub)
    assert later.woke == (await hub.router(),)
    own = await hub.one(trigger("comment.created", by=CAL))
    assert own.woke == (item.session,)


@pytest.mark.clause("B6.5")
async def test_what_was_passed_through_is_the_routers_to_place_once_it_is_handed_back(
    hub: StillHub,
) -> None:
    item = await worker(hub, "pr:7")
    came = await hub.one(trigger("comment.created", by=ANN))
    await back(hub, came, item)
    router = await hub.router()
    assert came.id in await inbox(hub, router)
    assert await hub.see(lambda c: intake.was_delivered(c, router, came.id))


# ------------------------------------------------------------------ leaving
async def thread_of(hub: StillHub, item: WorkItem) -> ThreadId:
    return (await hub.item(item)).thread


@pytest.mark.clause("B6.4")
@pytest.mark.parametrize("before", [True, False], ids=["the trigger first", "leaving first"])
async def test_a_trigger_that_races_leaving_has_exactly_one_owner(
    hub: StillHub, *, before: bool
) -> None:
    item = await worker(hub, "pr:7")
    thread, router = await thread_of(hub, item), await hub.router()

    async def leave() -> None:
        await hub.do(lambda u: follows.leave(u, item.session, thread, by="operator"))

    if not before:
        await leave()
    came = await hub.one(trigger("ci.failed"))
    if before:
        await leave()
    assert await inbox(hub, item.session) == []
    assert await inbox(hub, router) == [came.id]
    assert (await hub.row(SESSION, id=router))["ready_at_ms"] is not None


@pytest.mark.clause("B6.4", "B11.8")
async def test_a_turn_that_waits_for_what_came_and_went_elsewhere_is_not_asleep(
    hub: StillHub,
) -> None:
    item = await hub.opened(trigger(thread="pr:7"))
    thread = await thread_of(hub, item)
    (claim,) = [one for one in await hub.claim() if one.session == item.session]
    turn, _ = await hub.do(lambda u: steps.open_turn(u, claim, Limits(), ContextBounds()))
    wait = waits.Asked(kind=WaitKind.EXTERNAL, ref=thread, why="CI")
    await hub.do(lambda u: waits.register(u, item.id, wait))
    await hub.one(trigger("ci.failed"))  # what it waits for
    await hub.do(lambda u: follows.leave(u, item.session, thread, by="operator"))
    assert await inbox(hub, item.session) == []
    await hub.do(lambda u: settle.rest(u, turn, Ending.REST))
    assert [one for one in await hub.asleep_for_ever() if one.id == item.id] == []
    (told,) = await inbox(hub, item.session)
    assert (await hub.row(TRIGGER, id=told))["kind"] == "wait.gone"


@pytest.mark.clause("B6.4", "B19.1")
async def test_leaving_and_a_trigger_at_the_very_same_time_leave_one_owner(hub: StillHub) -> None:
    router = await hub.router()
    for n in range(4):
        item = await worker(hub, f"pr:{n}")
        thread = await thread_of(hub, item)
        given = trigger("ci.failed", thread=f"pr:{n}")
        async with asyncio.TaskGroup() as group:
            came = group.create_task(hub.one(given))
            group.create_task(
                hub.do(partial(follows.leave, session=item.session, thread=thread, by="operator"))
            )
        assert await inbox(hub, item.session) == []
        assert (await inbox(hub, router)).count(came.result().id) == 1


@pytest.mark.clause("B6.4")
async def test_while_another_follows_leaving_gives_the_router_nothing(hub: StillHub) -> None:
    item, other = await worker(hub, "pr:7"), await worker(hub, "pr:8")
    thread = await thread_of(hub, item)
    assert await hub.do(lambda u: follows.join(u, other.session, thread, by="operator"))
    assert not await hub.do(lambda u: follows.join(u, other.session, thread, by="operator"))
    came = await hub.one(trigger("ci.failed"))
    await hub.do(lambda u: follows.leave(u, item.session, thread, by="operator"))
    assert await inbox(hub, item.session) == await inbox(hub, await hub.router()) == []
    assert await inbox(hub, other.session) == [came.id]
    await hub.do(lambda u: follows.leave(u, other.session, thread, by="operator"))
    assert await inbox(hub, await hub.router()) == [came.id]


@pytest.mark.clause("B6.4")
async def test_leaving_keeps_what_was_taken_what_the_hub_said_and_what_a_link_brings(
    hub: StillHub,
) -> None:
    item = await worker(hub, "pr:7")
    other = await hub.one(trigger("issue.opened", by=ANN, thread="issue:1", related=("pr:7",)))
    await hub.do(lambda u: people.say(u, item.session, "hurry"))
    word = (await inbox(hub, item.session))[-1]
    issue = (await hub.row(TRIGGER, id=other.id))["thread_id"]
    await hub.do(lambda u: work.subscribe(u, item.session, issue))
    await hub.do(
        lambda u: follows.leave(u, item.session, work.read(u.c, item.id).thread, by="operator")
    )
    assert await inbox(hub, item.session) == [other.id, word]


@pytest.mark.clause("B6.4")
async def test_only_a_live_worker_joins_and_only_a_follower_leaves(hub: StillHub) -> None:
    item = await worker(hub, "pr:7")
    thread, router = await thread_of(hub, item), await hub.router()
    with pytest.raises(NotNowError, match="only a worker"):
        await hub.do(lambda u: follows.join(u, router, thread, by="operator"))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: follows.join(u, "se_none", thread, by="operator"))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: follows.join(u, item.session, "th_none", by="operator"))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: follows.leave(u, router, thread, by="operator"))
