"""Work items on a real database: opened once, moved by the table, ended for good (B5.2, B11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fixtures.still_hub import ANN, CODE, EVE, StillHub, opening_of, trigger
from upright.api import Code, EffectClass
from upright.core import work as machine
from upright.core.errors import IllegalMoveError, InvalidError, StaleError
from upright.core.outbox import OutboxState
from upright.core.wait import WaitKind
from upright.core.work import (
    Accepted,
    Blocked,
    Evidence,
    EvidenceGiven,
    Stopped,
    WorkItem,
    WorkState,
)
from upright.store import intake, jobs, outbox, requests, threads, waits, work
from upright.store.tables import (
    DELIVERY,
    JOB,
    OUTBOX,
    REQUEST,
    SESSION,
    SUBSCRIPTION,
    WAIT,
    WORK,
)
from upright.store.unit import Unit


async def open_again(hub: StillHub, trigger_id: str) -> work.Opened:
    """Open an item for a stored trigger, whatever is there already."""
    router = await hub.router()
    return await hub.do(
        lambda u: work.open_item(u, opening_of(u.c, trigger_id, ("tests pass",)), router)
    )


# ------------------------------------------------------------------ opening
@pytest.mark.clause("B5.2")
async def test_opening_makes_item_worker_mandate_and_subscription_at_once(hub: StillHub) -> None:
    item = await hub.opened()
    row = await hub.row(WORK)
    session = await hub.row(SESSION, id=item.session)
    assert (row["state"], row["mandate"]["given_by"]) == ("runnable", "ci")
    assert (session["kind"], session["work_id"], session["taint"]) == ("worker", item.id, "member")
    assert session["ready_at_ms"] is not None
    assert (await hub.row(SUBSCRIPTION))["thread_id"] == item.thread
    assert [row["trigger_id"] for row in await hub.rows(DELIVERY, session_id=item.session)] == [
        item.trigger
    ]


@pytest.mark.clause("B5.2")
async def test_a_trigger_opens_one_item_however_often_it_is_asked_for(hub: StillHub) -> None:
    item = await hub.opened()
    again = await open_again(hub, item.trigger)
    await hub.reopen()
    after = await open_again(hub, item.trigger)
    assert (again.created, again.item.id, after.item.id) == (False, item.id, item.id)
    assert len(await hub.rows(SESSION, kind="worker")) == 1
    assert len(await hub.rows(SUBSCRIPTION)) == 1


@pytest.mark.clause("B5.2", "B6.3")
async def test_opening_again_leaves_what_waits_for_the_worker_where_it_is(hub: StillHub) -> None:
    item = await hub.opened()
    came = await hub.one(trigger("comment.created", by=ANN))
    await open_again(hub, item.trigger)
    unread = await hub.see(lambda c: intake.unread(c, item.session))
    assert [one.id for one in unread] == [item.trigger, came.id]


@pytest.mark.clause("B6.3")
async def test_what_waits_on_the_thread_in_the_routers_inbox_goes_to_the_worker(
    hub: StillHub,
) -> None:
    first, second, elsewhere = await hub.accept(trigger(), trigger(), trigger(thread="pr:8"))
    router = await hub.router()
    opened = await open_again(hub, first.id)
    unread = await hub.see(lambda c: intake.unread(c, opened.item.session))
    left = await hub.see(lambda c: intake.unread(c, router))
    assert [one.id for one in unread] == [first.id, second.id]
    assert [one.id for one in left] == [elsewhere.id]


@pytest.mark.clause("B14.2")
async def test_a_worker_is_no_cleaner_than_the_trigger_and_its_router(hub: StillHub) -> None:
    accepted = await hub.one(trigger(by=EVE))
    opened = await open_again(hub, accepted.id)
    session = await hub.row(SESSION, id=opened.item.session)
    assert (session["taint"], opened.item.mandate.trust.label) == ("stranger", "stranger")


# ------------------------------------------------------------------ the code
@pytest.mark.clause("B6.10")
async def test_an_item_has_the_newest_code_of_its_thread_when_its_trigger_names_none(
    hub: StillHub,
) -> None:
    await hub.one(trigger("pr.opened", by=ANN, code=replace(CODE, sha="aaaaaaa")))
    await hub.one(trigger("pr.pushed", by=ANN, code=replace(CODE, sha="bbbbbbb")))
    item = await hub.opened(trigger("ci.failed", code=replace(CODE, sha="", branch="")))
    assert item.code == replace(CODE, sha="bbbbbbb")


@pytest.mark.clause("B6.10")
async def test_a_commit_that_the_trigger_names_itself_counts_before_a_newer_one(
    hub: StillHub,
) -> None:
    await hub.one(trigger("pr.pushed", by=ANN, code=replace(CODE, sha="bbbbbbb")))
    item = await hub.opened(trigger(code=replace(CODE, sha="aaaaaaa", number=None)))
    assert item.code == replace(CODE, sha="aaaaaaa")


@pytest.mark.clause("B14.6")
@pytest.mark.parametrize(
    ("told", "own", "fork"),
    [
        (replace(CODE, fork=True), replace(CODE, sha=""), True),
        (replace(CODE, fork=True), CODE, True),
        (CODE, replace(CODE, sha=""), False),
        (replace(CODE, sha=""), replace(CODE, sha=""), True),
        (replace(CODE, sha="", number=None), replace(CODE, sha="", number=None), False),
    ],
    ids=["fork", "fork-and-commit", "ours", "nobody-knows", "no-pull-request"],
)
async def test_a_fork_stays_one_and_so_does_what_nobody_knows(
    hub: StillHub, told: Code, own: Code, *, fork: bool
) -> None:
    await hub.one(trigger("pr.opened", by=ANN, code=told))
    item = await hub.opened(trigger(code=own))
    assert item.code is not None
    assert item.code.fork is fork


async def test_an_item_whose_trigger_speaks_of_no_code_has_none(hub: StillHub) -> None:
    await hub.one(trigger("pr.opened", by=ANN))
    assert (await hub.opened(trigger(code=None))).code is None


# ------------------------------------------------------------------ moving
async def move(hub: StillHub, item: WorkItem, event: machine.WorkEvent) -> None:
    await hub.do(lambda u: work.move(u, item, event))


async def register(hub: StillHub, item: WorkItem, asked: waits.Asked) -> None:
    await hub.do(lambda u: waits.register(u, item.id, asked))


@pytest.mark.clause("B11.6")
async def test_a_move_decided_on_an_older_revision_is_refused(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    with pytest.raises(StaleError):
        machine.step(await hub.item(item), machine.Woken(), revision=item.revision)


@pytest.mark.clause("B11.11")
@pytest.mark.parametrize("proofs", [(), ("tests pass",), ("lint",)])
async def test_completion_needs_evidence_for_every_criterion(
    hub: StillHub, proofs: tuple[str, ...]
) -> None:
    item = await hub.opened(criteria=("tests pass", "lint"))
    given = tuple(Evidence(criterion=one, proof="c0ffee0") for one in proofs)
    with pytest.raises(InvalidError):
        await hub.do(lambda u: work.move(u, replace(item, evidence=given), EvidenceGiven()))
    assert (await hub.item(item)).state is WorkState.RUNNABLE


async def laden(hub: StillHub) -> WorkItem:
    """Open an item with an open wait, a question, jobs in two states and effects in two."""
    item = await hub.opened()
    await hub.device()

    def unit(u: Unit) -> None:
        work.ask(u, item, "Which branch?")
        for call in ("c_1", "c_2"):
            order = jobs.Order(
                session=item.session,
                work=item.id,
                call_id=call,
                device="dv_" + "d" * 26,
                spec_json="{}",
                digest=call,
                stdin=b"",
                epoch=1,
                background=False,
                turn="tu",
            )
            jobs.mark_sent(u.c, jobs.queue(u, order))
        for key, state in (("held", OutboxState.HELD), ("pending", OutboxState.PENDING)):
            assert item.destination is not None
            draft = outbox.Draft(
                session=item.session,
                work=item.id,
                trigger=item.trigger,
                effect_class=EffectClass.REPLY,
                destination=item.destination,
                text=key,
                idempotency_key=key,
                state=state,
            )
            outbox.put(u, draft)

    await hub.do(unit)
    return item


@pytest.mark.clause("B11.6", "B11.8")
@pytest.mark.case("HO/1808")
async def test_the_end_of_an_item_takes_its_waits_jobs_and_questions_with_it(
    hub: StillHub,
) -> None:
    item = await laden(hub)
    given = (Evidence(criterion="tests pass", proof="c0ffee0"),)

    def unit(u: Unit) -> WorkItem:
        moved = work.move(u, replace(item, evidence=given), EvidenceGiven())
        return work.move(u, moved, Accepted())

    done = await hub.do(unit)
    assert done.state is WorkState.COMPLETED
    assert {row["state"] for row in await hub.rows(WAIT)} == {"cancelled"}
    assert {row["state"] for row in await hub.rows(JOB)} == {"stopping"}
    assert {row["state"] for row in await hub.rows(REQUEST)} == {"withdrawn"}
    effects = {row["text"]: row["state"] for row in await hub.rows(OUTBOX)}
    assert effects == {"held": "dead", "pending": "pending"}


@pytest.mark.clause("B11.6")
@pytest.mark.case("HO/2252")
async def test_an_ended_item_moves_no_more(hub: StillHub) -> None:
    item = await hub.opened()
    ended = await hub.do(lambda u: work.move(u, item, Stopped()))
    for event in (machine.Woken(), Blocked(), Stopped(), EvidenceGiven()):
        with pytest.raises(IllegalMoveError):
            await move(hub, ended, event)
    assert (await hub.item(item)).state is WorkState.CANCELLED


@pytest.mark.clause("B11.1")
async def test_waking_moves_what_sleeps_and_leaves_what_is_blocked(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    woken = await hub.do(lambda u: work.woken(u, work.read(u.c, item.id)))
    assert woken.state is WorkState.RUNNABLE

    def block(u: Unit) -> WorkItem:
        requests.ask(u, requests.Asking(prompt="?", work=item.id, session=item.session))
        return work.move(u, woken, Blocked(), reason="?")

    blocked = await hub.do(block)
    assert (await hub.do(lambda u: work.woken(u, blocked))).state is WorkState.BLOCKED


@pytest.mark.clause("B11.9")
async def test_an_item_at_rest_is_in_the_state_of_its_newest_wait_and_says_why(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    for kind, why in ((WaitKind.EXTERNAL, "CI"), (WaitKind.JOB, "the build")):
        await register(hub, item, waits.Asked(kind=kind, ref="x", why=why))
    rested = await hub.do(lambda u: work.rest(u, work.read(u.c, item.id)))
    assert (rested.state, rested.reason) == (WorkState.WAITING_JOB, "the build")


async def test_an_item_without_a_wait_stays_runnable(hub: StillHub) -> None:
    item = await hub.opened()
    assert (await hub.do(lambda u: work.rest(u, item))).state is WorkState.RUNNABLE


async def test_the_own_branch_of_an_item_is_taught_to_its_thread_once(hub: StillHub) -> None:
    item = await hub.opened(trigger(facts=(("branch_keys", "gh:acme/app@"),)))
    key = f"gh:acme/app@{work.own_branch(item.id)}"
    await hub.do(lambda u: threads.learn(u, item.thread, [key, key]))
    came = await hub.one(trigger(thread="x", joins=(key,)))
    assert came.woke == (item.session,)


@pytest.mark.clause("B6.3")
async def test_what_the_router_took_together_with_the_opening_trigger_goes_to_the_worker(
    hub: StillHub,
) -> None:
    earlier = await hub.one(trigger())
    opening, later = await hub.one(trigger()), await hub.one(trigger())
    router = await hub.router()
    batch = await hub.see(lambda c: intake.unread(c, router))
    await hub.do(lambda u: intake.taken(u.c, router, batch, 1))
    item = (await open_again(hub, opening.id)).item
    waiting = await hub.see(lambda c: intake.unread(c, item.session))
    assert [one.id for one in waiting] == [opening.id, later.id]
    assert earlier.id in {one.id for one in batch}
