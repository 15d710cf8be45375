"""Deadlines and people on a real database: what fires when nothing came, and who may answer."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from fixtures.still_hub import START_MS, StillHub, decided
from upright.api import EffectClass
from upright.core.errors import IllegalMoveError, InvalidError
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.wait import OnDeadline, WaitKind
from upright.core.work import WorkItem, WorkState
from upright.store import deadlines, intake, outbox, people, requests, waits, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.tables import OUTBOX, REQUEST, SESSION, TRIGGER, WAIT, WORK
from upright.store.unit import Unit

DAY_S = 24 * 3600


async def waiting(
    hub: StillHub, then: OnDeadline, kind: WaitKind = WaitKind.EXTERNAL, *, in_s: int = 60
) -> WorkItem:
    """Let a worker sleep until a deadline."""
    item = await hub.opened()
    asked = waits.Asked(
        kind=kind, ref="x", why="CI", look_first="checks", deadline_s=in_s, on_deadline=then
    )
    await hub.do(lambda u: waits.register(u, item.id, asked))
    await hub.asleep(item)
    return item


async def fire(hub: StillHub) -> list[str]:
    """Fire what is due; return whom that wakes."""
    return list(await hub.do(deadlines.fire_due))


async def told(hub: StillHub, item: WorkItem) -> list[str]:
    """Return the kinds of what waits for a worker."""
    unread = await hub.see(lambda c: intake.unread(c, item.session))
    return [one.trigger.kind for one in unread]


# ------------------------------------------------------------------ waits
@pytest.mark.clause("B11.3", "B11.7")
@pytest.mark.parametrize("then", [OnDeadline.LOOK, OnDeadline.WAKE])
async def test_a_deadline_to_look_wakes_the_worker_once_and_says_what_to_look_at(
    hub: StillHub, then: OnDeadline
) -> None:
    item = await waiting(hub, then)
    hub.clock.go_on(59.999)
    assert await fire(hub) == []
    hub.clock.go_on(0.001)
    assert await fire(hub) == [item.session]
    assert await fire(hub) == []
    (notice,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert (notice.trigger.kind, notice.trigger.content.text) == ("wait.deadline", "checks")
    assert [row["state"] for row in await hub.rows(WAIT)] == ["expired"]
    assert await hub.rows(REQUEST) == []


@pytest.mark.clause("B11.3")
async def test_a_deadline_to_ask_asks_a_person_and_wakes_the_worker(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.ASK)
    hub.clock.go_on(60)
    assert await fire(hub) == [item.session]
    request = await hub.row(REQUEST)
    assert (request["kind"], request["state"], request["work_id"]) == ("question", "asked", item.id)
    assert [row["state"] for row in await hub.rows(WAIT)] == ["expired", "open"]


@pytest.mark.clause("B11.3", "B11.8")
async def test_a_deadline_to_remind_blocks_the_item_with_an_open_question(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.REMIND, WaitKind.OPERATOR)
    hub.clock.go_on(60)
    assert await fire(hub) == []
    assert (await hub.item(item)).state is WorkState.BLOCKED
    assert (await hub.row(REQUEST))["state"] == RequestState.ASKED
    assert await told(hub, item) == []


async def completing(hub: StillHub) -> WorkItem:
    """Let a worker claim to be done, while a question of it is still open."""
    item = await hub.opened()
    asked = waits.Asked(
        kind=WaitKind.OPERATOR, ref="x", why="which?", deadline_s=60, on_deadline=OnDeadline.REMIND
    )

    def unit(u: Unit) -> None:
        waits.register(u, item.id, asked)
        u.c.execute(
            WORK.update().where(WORK.c.id == item.id).values(state=WorkState.COMPLETING.value)
        )

    await hub.do(unit)
    return item


@pytest.mark.clause("B11.3", "B11.8")
async def test_a_reminder_of_what_is_nearly_done_asks_and_moves_nothing(hub: StillHub) -> None:
    item = await completing(hub)
    hub.clock.go_on(60)
    assert await fire(hub) == []
    assert (await hub.item(item)).state is WorkState.COMPLETING
    assert (await hub.row(REQUEST))["prompt"] == "Still waiting for your answer: which?"


@pytest.mark.clause("B11.7")
async def test_a_deadline_that_can_not_fire_holds_up_no_other(hub: StillHub) -> None:
    broken, other = await completing(hub), await waiting(hub, OnDeadline.WAKE)
    await hub.do(lambda u: u.c.execute(WORK.delete().where(WORK.c.id == broken.id)))
    hub.clock.go_on(60)
    assert await fire(hub) == [other.session]
    assert await fire(hub) == []


@pytest.mark.clause("B11.7")
@pytest.mark.case("HO/2881")
async def test_what_was_due_while_the_hub_was_down_fires_late_and_once(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.WAKE, WaitKind.TIMER)
    await hub.reopen()
    hub.clock.go_on(30 * DAY_S)
    assert await fire(hub) == [item.session]
    await hub.reopen()
    assert await fire(hub) == []
    assert await told(hub, item) == ["wait.deadline"]


@pytest.mark.clause("B11.7")
async def test_a_clock_that_jumps_back_puts_off_and_does_not_repeat(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.WAKE, WaitKind.TIMER)
    hub.clock.go_on(-DAY_S)
    assert await fire(hub) == []
    hub.clock.go_on(DAY_S + 60)
    assert await fire(hub) == [item.session]
    hub.clock.go_on(-DAY_S)
    assert await fire(hub) == []


@pytest.mark.clause("B11.3")
async def test_a_wait_that_was_matched_does_not_fire(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.LOOK)
    await hub.do(lambda u: waits.cancel(u.c, item.id))
    nap = waits.Asked(kind=WaitKind.TIMER, ref="", why="a nap", deadline_s=DAY_S)
    await hub.do(lambda u: waits.register(u, item.id, nap))
    hub.clock.go_on(60)
    assert await fire(hub) == []


@pytest.mark.clause("B11.3")
@pytest.mark.parametrize(
    ("kind", "seconds", "then"),
    [
        (WaitKind.JOB, 2 * 3600, OnDeadline.LOOK),
        (WaitKind.EXTERNAL, 3 * DAY_S, OnDeadline.ASK),
        (WaitKind.OPERATOR, 7 * DAY_S, OnDeadline.REMIND),
        (WaitKind.SYSTEM, DAY_S, OnDeadline.ASK),
    ],
)
@pytest.mark.case("HO/1989")
async def test_each_kind_of_wait_has_a_deadline_of_its_own(
    hub: StillHub, kind: WaitKind, seconds: int, then: OnDeadline
) -> None:
    item = await hub.opened()
    asked = waits.Asked(kind=kind, ref="x", why="?")
    wait = await hub.do(lambda u: waits.register(u, item.id, asked))
    assert (wait.deadline_ms, wait.on_deadline) == (START_MS + 1000 * seconds, then)
    assert await hub.see(deadlines.next_ms) == wait.deadline_ms


@pytest.mark.parametrize("seconds", [0, -1, None])
async def test_a_timer_without_a_time_to_come_is_refused(
    hub: StillHub, seconds: int | None
) -> None:
    item = await hub.opened()
    asked = waits.Asked(kind=WaitKind.TIMER, ref="", why="?", deadline_s=seconds)
    with pytest.raises(InvalidError):
        await hub.do(lambda u: waits.register(u, item.id, asked))


# ------------------------------------------------------------------ answers
async def asking(hub: StillHub) -> tuple[WorkItem, str]:
    """Let a worker sleep until a person answers."""
    item = await hub.opened()
    request = await hub.do(lambda u: work.ask(u, item, "Which branch?"))
    await hub.asleep(item)
    return item, request


@pytest.mark.clause("B14.3", "B11.4")
@pytest.mark.case("OC/110880")
async def test_the_first_answer_wakes_the_worker_and_a_second_is_refused(hub: StillHub) -> None:
    item, request = await asking(hub)
    assert await hub.do(lambda u: people.answer(u, request, "main", "ann")) == item.session
    with pytest.raises(IllegalMoveError):
        await hub.do(lambda u: people.answer(u, request, "dev", "bob"))
    row = await hub.row(REQUEST)
    assert (row["answer"], row["answered_by"], row["state"]) == ("main", "ann", "answered")
    (notice,) = await hub.see(lambda c: intake.unread(c, item.session))
    assert (notice.trigger.kind, notice.trigger.content.text) == ("operator.answer", "main")
    assert notice.trust.label == "operator"
    assert [row["state"] for row in await hub.rows(WAIT)] == ["matched"]


@pytest.mark.clause("B11.2")
async def test_an_answer_unblocks(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.REMIND, WaitKind.OPERATOR)
    hub.clock.go_on(60)
    await fire(hub)
    request = (await hub.row(REQUEST))["id"]
    await hub.do(lambda u: people.answer(u, request, "go on", "ann"))
    assert (await hub.item(item)).state is WorkState.RUNNABLE
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None


@pytest.mark.clause("B11.2")
async def test_a_word_of_the_operator_unblocks_and_wakes(hub: StillHub) -> None:
    item = await waiting(hub, OnDeadline.REMIND, WaitKind.OPERATOR)
    hub.clock.go_on(60)
    await fire(hub)
    await hub.do(lambda u: people.say(u, item.session, "go on"))
    assert (await hub.item(item)).state is WorkState.RUNNABLE
    assert await told(hub, item) == ["operator.message"]


@pytest.mark.case("AI/210")
async def test_the_same_open_question_is_asked_once_and_a_settled_one_again(
    hub: StillHub,
) -> None:
    item, request = await asking(hub)
    assert await hub.do(lambda u: work.ask(u, item, "Which branch?")) == request
    await hub.do(lambda u: people.answer(u, request, "main", "ann"))
    assert await hub.do(lambda u: work.ask(u, item, "Which branch?")) != request


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("timers_ran", [True, False], ids=["expired", "due"])
@pytest.mark.case("OC/59162")
async def test_an_answer_after_the_time_is_refused(hub: StillHub, *, timers_ran: bool) -> None:
    item = await hub.opened()
    asked = requests.Asking(prompt="?", work=item.id, session=item.session, life_ms=60_000)
    request = await hub.do(lambda u: requests.ask(u, asked))
    hub.clock.go_on(60)
    if timers_ran:
        await fire(hub)
    with pytest.raises((IllegalMoveError, NotNowError)):
        await hub.do(lambda u: people.answer(u, request, "yes", "ann"))
    assert (await hub.row(REQUEST))["answer"] == ""


@pytest.mark.clause("B11.8")
async def test_a_question_that_nobody_answers_keeps_a_blocked_item_from_being_forgotten(
    hub: StillHub,
) -> None:
    item = await waiting(hub, OnDeadline.REMIND, WaitKind.OPERATOR)
    hub.clock.go_on(60)
    await fire(hub)
    for _ in range(3):
        hub.clock.go_on(91 * DAY_S)
        await fire(hub)
    assert (await hub.item(item)).state is WorkState.BLOCKED
    states = [row["state"] for row in await hub.rows(REQUEST)]
    assert states == ["expired", "expired", "expired", "asked"]


# ------------------------------------------------------------------ approvals
async def held(hub: StillHub, *, life_ms: int = 60_000) -> tuple[WorkItem, str]:
    """Let a worker sleep until a person approves its reply."""
    item = await hub.opened()

    def unit(u: Unit) -> str:
        assert item.destination is not None
        draft = outbox.Draft(
            session=item.session,
            work=item.id,
            trigger=item.trigger,
            effect_class=EffectClass.REPLY,
            destination=item.destination,
            text="Fixed.",
            idempotency_key="k",
            state=OutboxState.HELD,
        )
        stored = outbox.put(u, draft)
        asking = requests.Asking(
            prompt="Send this?",
            work=item.id,
            session=item.session,
            kind=RequestKind.APPROVAL,
            outbox=stored.id,
            digest=stored.digest,
            life_ms=life_ms,
        )
        request = requests.ask(u, asking)
        asked = waits.Asked(kind=WaitKind.OPERATOR, ref=request, why="approval")
        waits.register(u, item.id, asked)
        return request

    request = await hub.do(unit)
    await hub.asleep(item)
    return item, request


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("approve", "state", "kinds"),
    [
        (True, "pending", ["approval.approved"]),
        (False, "dead", ["effect.dead", "approval.denied"]),
    ],
    ids=["approved", "denied"],
)
async def test_a_decision_releases_or_discards_exactly_the_effect_that_was_shown(
    hub: StillHub, *, approve: bool, state: str, kinds: list[str]
) -> None:
    item, request = await held(hub)
    await hub.do(lambda u: decided(u, request, "ann", approve=approve))
    assert (await hub.row(OUTBOX))["state"] == state
    assert await told(hub, item) == kinds
    for again in (True, False):
        with pytest.raises(IllegalMoveError):
            await decide(hub, request, approve=again)
    assert (await hub.row(OUTBOX))["state"] == state


async def decide(hub: StillHub, request: str, *, approve: bool) -> None:
    await hub.do(lambda u: decided(u, request, "bob", approve=approve))


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize("approve", [True, False])
async def test_a_changed_effect_needs_an_approval_of_its_own(
    hub: StillHub, *, approve: bool
) -> None:
    _, request = await held(hub)
    await hub.do(lambda u: u.c.execute(OUTBOX.update().values(text="Buy!")).rowcount)
    with pytest.raises(NotNowError):
        await decide(hub, request, approve=approve)
    assert (await hub.row(OUTBOX))["state"] == "held"
    assert (await hub.row(REQUEST))["state"] == "asked"


@pytest.mark.clause("B14.3")
@pytest.mark.case("OC/59162")
async def test_an_approval_that_expires_is_a_no_and_the_worker_is_told(hub: StillHub) -> None:
    item, request = await held(hub)
    hub.clock.go_on(60)
    assert await fire(hub) == [item.session]
    row = await hub.row(OUTBOX)
    assert row["state"] == "dead"
    assert row["reason"].startswith(f"not approved: nobody answered {request} in time")
    assert await told(hub, item) == ["effect.dead"]
    with pytest.raises(NotNowError):
        await decide(hub, request, approve=True)


@pytest.mark.clause("B14.3")
async def test_a_question_is_not_decided_and_an_approval_is_not_answered(hub: StillHub) -> None:
    _, request = await held(hub)
    with pytest.raises(NotNowError):
        await hub.do(lambda u: people.answer(u, request, "approved", "ann"))
    question = await hub.do(lambda u: requests.ask(u, requests.Asking(prompt="?")))
    with pytest.raises(NotNowError):
        await decide(hub, question, approve=True)


# ------------------------------------------------------------------ who can't be told
async def test_nobody_can_be_told_anything_who_is_not_there_or_has_ended(hub: StillHub) -> None:
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: people.say(u, "se_nobody", "hello"))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: people.answer(u, "rq_nobody", "yes", "ann"))
    router = await hub.router()
    ended = SESSION.update().where(SESSION.c.id == router).values(ended_at_ms=1)
    await hub.do(lambda u: u.c.execute(ended).rowcount)
    with pytest.raises(NotNowError):
        await hub.do(lambda u: people.say(u, router, "hello"))


async def test_people_speak_with_the_router_in_a_thread_of_its_own(hub: StillHub) -> None:
    router = await hub.router()
    for text in ("one", "two"):
        await say(hub, router, text)
    threads = await hub.see(lambda c: set(c.scalars(sa.select(TRIGGER.c.thread_id))))
    assert len(threads) == 1
    assert len(await hub.see(lambda c: intake.unread(c, router))) == 2


async def say(hub: StillHub, session: str, text: str) -> None:
    await hub.do(lambda u: people.say(u, session, text))
