"""Oversight: an operator cancels, unblocks, stops and wakes; nothing is left behind."""

from __future__ import annotations

import json

import pytest

from fixtures.agents import AT_ONCE, TEST, WAIT_CI, Say, call, named, users, worker
from fixtures.still_hub import ANN, DEVICE, StillHub, trigger
from upright.core.mandate import Trust
from upright.core.wait import WaitKind
from upright.core.work import WorkItem, WorkState
from upright.engine.ports import Lease
from upright.store import (
    deadlines,
    devices,
    intake,
    jobs,
    oversight,
    relations,
    sessions,
    turns,
    waits,
    work,
)
from upright.store.errors import LeaseLostError, NotNowError, UnknownIdError
from upright.store.relations import Spawning
from upright.store.tables import DELIVERY, JOB, REQUEST, SESSION, TURN, WAIT, WORK


async def napping(hub: StillHub) -> WorkItem:
    item = await hub.opened()
    await hub.asleep(item)
    return item


async def inbox(hub: StillHub, session: str) -> list[str]:
    unread = await hub.see(lambda c: intake.unread(c, session))
    return [one.trigger.kind for one in unread]


# ------------------------------------------------------------------ cancel and stop
@pytest.mark.clause("B6.6", "B11.1")
@pytest.mark.case("HO/1808")
async def test_a_cancelled_item_leaves_nothing_open_and_its_tail_goes_to_the_router(
    hub: StillHub,
) -> None:
    item = await napping(hub)
    router = await hub.router()
    await hub.one(trigger("comment", by=ANN))
    assert await hub.do(lambda u: oversight.cancel(u, item.id, "ann")) == [router]
    assert (await hub.item(item)).state is WorkState.CANCELLED
    assert [row["state"] for row in await hub.rows(WAIT)] == ["cancelled"]
    assert (await hub.row(SESSION, id=item.session))["ended_at_ms"] is not None
    assert await inbox(hub, router) == ["comment"]
    assert await hub.asleep_for_ever() == []
    with pytest.raises(NotNowError, match="cancelled already"):
        await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    with pytest.raises(NotNowError, match="ended already"):
        await hub.do(lambda u: oversight.stop(u, item.session, "ann"))


@pytest.mark.clause("B11.12")
async def test_children_are_cancelled_with_their_parent(hub: StillHub) -> None:
    item = await napping(hub)
    asked = Spawning(goal="a part", criteria=("x",), taint=Trust.MEMBER)
    child = await hub.do(lambda u: relations.spawn(u, work.read(u.c, item.id), asked))
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    assert {row["state"] for row in await hub.rows(WORK)} == {"cancelled"}
    assert item.id in (await hub.item(child)).reason


@pytest.mark.clause("B8.5", "B6.6")
@pytest.mark.case("CC/2364")
async def test_a_stopped_session_can_write_nothing_more_although_its_turn_runs(
    hub: StillHub,
) -> None:
    """copilot-cli 2364: a session whose machine was deleted could not be stopped for weeks."""
    item = await hub.opened()
    (claim,) = await hub.claim()
    await hub.do(lambda u: turns.begin(u, claim))
    await hub.do(lambda u: oversight.stop(u, item.session, "ann"))
    with pytest.raises(LeaseLostError):
        await hub.see(lambda c: sessions.check(c, claim))
    assert (await hub.row(TURN))["ending"] == "stopped"
    assert item.session not in [one.session for one in await hub.claim()]


@pytest.mark.clause("B10.2")
@pytest.mark.case("CC/2364")
async def test_a_device_that_is_gone_fails_its_jobs_at_once_and_stop_works(hub: StillHub) -> None:
    """copilot-cli 2364: the runner was deleted, and the session spun on."""
    agents, item = await worker(
        hub, TEST, call("wait", {"for": "thread", "why": "news"}), limits=AT_ONCE
    )
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    assert await hub.do(lambda u: devices.revoke(u, DEVICE)) == [item.session]
    job = await hub.row(JOB)
    assert (job["state"], job["started"]) == ("lost", "yes")
    assert "job.finished" in await inbox(hub, item.session)
    await hub.do(lambda u: oversight.stop(u, item.session, "ann"))
    assert (await hub.item(item)).state is WorkState.CANCELLED


async def test_a_queued_job_of_a_cancelled_item_ends_although_its_device_is_away(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, TEST, limits=AT_ONCE)
    agents.box.is_on = False
    await agents.go()
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    job = await hub.row(JOB)
    assert (job["state"], job["settled"]) == ("stopped", True)


async def test_the_router_is_not_stopped_and_nobody_is_not_found(hub: StillHub) -> None:
    router = await hub.router()
    with pytest.raises(NotNowError, match="router"):
        await hub.do(lambda u: oversight.stop(u, router, "ann"))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: oversight.stop(u, "se_nobody", "ann"))


# ------------------------------------------------------------------ blocked
@pytest.mark.clause("B11.2", "B11.8")
async def test_an_operator_unblocks_and_the_question_is_withdrawn(hub: StillHub) -> None:
    item = await napping(hub)
    await hub.do(lambda u: work.block(u, work.read(u.c, item.id), "Which branch?"))
    assert await hub.asleep_for_ever() == []
    assert await hub.do(lambda u: oversight.unblock(u, item.id, "ann")) == item.session
    assert (await hub.item(item)).state is WorkState.RUNNABLE
    assert (await hub.row(REQUEST))["state"] == "withdrawn"
    assert await inbox(hub, item.session) == ["work.unblocked"]
    with pytest.raises(NotNowError, match="not blocked"):
        await hub.do(lambda u: oversight.unblock(u, item.id, "ann"))


@pytest.mark.clause("B8.7", "B11.8")
@pytest.mark.case("CC/2969")
async def test_a_worker_that_only_says_it_is_blocked_is_not_asked_again_and_again(
    hub: StillHub,
) -> None:
    """copilot-cli 2969: "I am blocked" was launched again until the quota was used up."""
    agents, item = await worker(hub, *[Say("I am blocked.")] * 9)
    await agents.go()
    assert len(agents.chat.requests) == 2  # the nudge is one
    assert (await hub.item(item)).state is WorkState.WAITING_OPERATOR
    assert "I am blocked." in (await hub.row(REQUEST))["prompt"]
    for _ in range(5):
        hub.clock.go_on(24 * 3600)
        await hub.do(deadlines.fire_due)
        await agents.go()
    assert len(agents.chat.requests) == 2


# ------------------------------------------------------------------ waits
@pytest.mark.clause("B11.4")
async def test_an_operator_wakes_a_wait_and_it_does_not_fire_again(hub: StillHub) -> None:
    item = await napping(hub)
    (wait,) = await hub.rows(WAIT)
    assert await hub.do(lambda u: oversight.wake(u, wait["id"], "ann")) == item.session
    assert await inbox(hub, item.session) == ["wait.woken"]
    assert (await hub.row(WAIT))["state"] == "matched"
    hub.clock.go_on(2 * 24 * 3600)
    assert await hub.do(deadlines.fire_due) == []
    with pytest.raises(NotNowError, match="not open"):
        await hub.do(lambda u: oversight.wake(u, wait["id"], "ann"))


@pytest.mark.clause("B11.8")
async def test_a_wait_that_is_taken_away_wakes_its_worker(hub: StillHub) -> None:
    item = await napping(hub)
    (wait,) = await hub.rows(WAIT)
    await hub.do(lambda u: oversight.cancel_wait(u, wait["id"], "ann"))
    assert (await hub.row(WAIT))["state"] == "cancelled"
    assert await inbox(hub, item.session) == ["wait.cancelled"]
    assert await hub.asleep_for_ever() == []


# ------------------------------------------------------------------ no silent sleep
@pytest.mark.clause("B11.3", "B11.7")
@pytest.mark.case("HO/1356")
async def test_a_recheck_that_passes_without_its_event_wakes_once(hub: StillHub) -> None:
    """HO/1356: the time to look again passed, and nothing woke."""
    item = await hub.opened()
    asked = waits.Asked(
        kind=WaitKind.EXTERNAL, ref=item.thread, why="CI", look_first="recheck", deadline_s=600
    )
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    hub.clock.go_on(601)
    assert await hub.do(deadlines.fire_due) == [item.session]
    assert await hub.do(deadlines.fire_due) == []
    (told,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert (told.trigger.kind, told.trigger.content.text) == ("wait.deadline", "recheck")


@pytest.mark.clause("B11.3", "B11.5")
@pytest.mark.case("HO/1989")
async def test_a_worker_that_waits_for_the_wrong_thing_still_hears_of_its_job(
    hub: StillHub,
) -> None:
    """HO/1989: a model waited for the operator while its own job ran, and slept for ever."""
    agents, item = await worker(
        hub,
        TEST,
        call("wait", {"for": "operator", "why": "the tests to finish"}),
        limits=AT_ONCE,
    )
    agents.box.answer = lambda argv, stdin: None
    await agents.go()
    kinds = {row["kind"]: row["deadline_ms"] for row in await hub.rows(WAIT, state="open")}
    assert set(kinds) == {"operator", "job_result"}
    assert all(kinds.values())
    (job,) = await hub.see(lambda c: jobs.of_session(c, item.session))
    await agents.box.end(job.id, 0)
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


@pytest.mark.clause("B11.5")
async def test_a_job_that_has_ended_is_not_waited_for(hub: StillHub) -> None:
    for_its_job = call("wait", lambda r: {"for": "job", "why": "tests", "job": named("jb")(r)})
    agents, item = await worker(hub, TEST, for_its_job, WAIT_CI)
    await agents.go()
    (wait,) = await hub.rows(WAIT)
    assert wait["kind"] == "external"
    assert "has ended already" in (await agents.loaded(item.session)).messages[-3].text


@pytest.mark.clause("B8.5", "B8.6")
@pytest.mark.case("HO/2686", "PR/1518")
async def test_what_a_dead_worker_had_claimed_is_taken_again(hub: StillHub) -> None:
    """HO/2686: a restart left a claim open, and later messages were refused."""
    item = await hub.opened()
    (first,) = await hub.claim(for_s=10)
    hub.clock.go_on(11)
    (again,) = await hub.claim(for_s=10)
    assert (again.session, again.epoch) == (item.session, first.epoch + 1)
    assert (await hub.one(trigger("comment", by=ANN))).woke == (item.session,)


@pytest.mark.clause("B11.5")
async def test_replacing_a_wait_that_was_met_keeps_what_came(hub: StillHub) -> None:
    item = await hub.opened()
    asked = waits.Asked(kind=WaitKind.EXTERNAL, ref=item.thread, why="CI")
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    await hub.one(trigger("comment", by=ANN))
    await hub.do(lambda u: waits.register(u, item.id, asked))
    assert [row["state"] for row in await hub.rows(WAIT)] == ["matched", "open"]
    assert await inbox(hub, item.session) == ["comment"]
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


@pytest.mark.clause("B11.5")
async def test_a_thread_that_moved_while_the_worker_thought_is_not_slept_through(
    hub: StillHub,
) -> None:
    agents, item = await worker(
        hub,
        call("plan", {"steps": []}),
        call("wait", {"for": "thread", "why": "a review"}),
        call("ask", {"question": "ok?"}),
    )
    agents.chat.meanwhile[1] = lambda: hub.one(trigger("comment", by=ANN))
    await agents.go()
    rows = await hub.rows(WAIT, kind="external")
    assert [row["state"] for row in rows] == ["matched"]
    assert await hub.rows(DELIVERY, session_id=item.session, taken_n=None) == []


@pytest.mark.clause("B11.10")
async def test_a_wake_begins_with_what_was_done_and_what_woke_it(hub: StillHub) -> None:
    agents, item = await worker(
        hub,
        call("plan", {"steps": [{"text": "look", "done": True}, {"text": "mend"}]}),
        TEST,
        call("wait", {"for": "thread", "why": "a review", "look_first": "the comments"}),
        call("ask", {"question": "ok?"}),
    )
    await agents.go()
    asked = Spawning(goal="a part", criteria=("x",), taint=Trust.MEMBER)
    child = await hub.do(lambda u: relations.spawn(u, work.read(u.c, item.id), asked))
    told = await hub.one(trigger("comment", by=ANN))
    hub.clock.go_on(60)
    claims = await hub.claim()
    (mine,) = [one for one in claims if one.session == item.session]
    await agents.runner()(Lease(session=mine.session, epoch=mine.epoch))
    shown = users((await agents.loaded(item.session)).messages)[-1]
    card = json.loads(shown.partition("<card>\n")[2].partition("\n</card>")[0])
    (job,) = await hub.see(lambda c: jobs.of_session(c, item.session))
    assert card["plan"] == [{"text": "look", "done": True}, {"text": "mend", "done": False}]
    assert card["woken_by"] == [f"{told.id} comment"]
    assert card["waited_for"] == ["external, matched: a review; look first at: the comments"]
    assert card["jobs"] == [f"{job.id} exited 0"]
    assert card["children"] == [f"{child.id} runnable: a part"]
    await hub.do(lambda u: oversight.cancel(u, child.id, "ann"))


@pytest.mark.clause("B11.4")
async def test_what_fits_two_waits_is_shown_to_the_operator_and_blocks_nothing(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    asked = waits.Asked(kind=WaitKind.EXTERNAL, ref=item.thread, why="CI")
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    twin = {**(await hub.row(WAIT)), "id": "wt_" + "9" * 26}
    await hub.do(lambda u: u.c.execute(WAIT.insert().values(**twin)).rowcount)
    told = await hub.one(trigger("comment", by=ANN))
    request = await hub.row(REQUEST)
    assert (told.id in request["prompt"], request["work_id"]) == (True, item.id)
    assert {row["state"] for row in await hub.rows(WAIT)} == {"open"}
    assert await inbox(hub, item.session) == ["comment"]
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


@pytest.mark.clause("B11.7")
@pytest.mark.parametrize("jump_s", [-24 * 3600, 24 * 3600])
@pytest.mark.case("DB/803")
async def test_a_clock_that_jumps_a_day_fires_a_timer_once(hub: StillHub, jump_s: int) -> None:
    item = await hub.opened()
    nap = waits.Asked(kind=WaitKind.TIMER, ref="", why="a nap", deadline_s=3600)
    await hub.do(lambda u: waits.register(u, item.id, nap))
    await hub.asleep(item)
    hub.clock.go_on(jump_s)
    fired = list(await hub.do(deadlines.fire_due))
    hub.clock.go_on(3600 - min(jump_s, 0))
    fired += await hub.do(deadlines.fire_due)
    hub.clock.go_on(-jump_s)
    fired += await hub.do(deadlines.fire_due)
    assert fired == [item.session]
