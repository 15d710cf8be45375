"""Work items as rows: open one with its worker in one transaction, and move it by the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Code
from upright.core import work as machine
from upright.core.errors import StaleError
from upright.core.home import WORKER
from upright.core.ids import SessionId, ThreadId, TriggerId, WorkId
from upright.core.job import JobState
from upright.core.mandate import Mandate, Trust
from upright.core.outbox import OutboxState
from upright.core.trigger import StoredTrigger
from upright.core.wait import WaitKind
from upright.core.work import WorkEffect, WorkEvent, WorkItem, WorkState
from upright.store import codec, requests, secrecy, sessions, succession, taints, threads, waits
from upright.store.errors import UnknownIdError
from upright.store.events import About, record
from upright.store.tables import DELIVERY, JOB, OUTBOX, SUBSCRIPTION, TRIGGER, WORK
from upright.store.unit import Unit

HUB_SOURCE: Final = "hub"
"""The source of what the hub itself says."""
CHILD: Final = "work:"
"""How the reference of a wait begins that is for a child item's end."""
_LOOK_BACK: Final = 200

# statements of the hot path are made once: building one costs more than running it
_READ: Final = sa.select(WORK).where(WORK.c.id == sa.bindparam("work"))
_MOVED: Final = ("state", "revision", "reason", "plan_json", "evidence_json", "changed_at_ms")
_MOVE: Final = (
    WORK.update()
    .where(WORK.c.id == sa.bindparam("item"), WORK.c.revision == sa.bindparam("seen"))
    .values({name: sa.bindparam(f"to_{name}", type_=WORK.c[name].type) for name in _MOVED})
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the router decided: a goal with criteria, for the trigger that asks for it."""

    trigger: StoredTrigger
    goal: str
    criteria: tuple[str, ...]
    mandate: Mandate
    taint: Trust  # of whoever wrote the goal: a worker is no cleaner than its card
    agent: str = WORKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The item of a trigger; ``created`` is False when the trigger had one already."""

    item: WorkItem
    created: bool


def open_item(u: Unit, opening: Opening, router: str) -> Opened:
    """Open item, worker, mandate and subscription; once for each trigger (B5.2).

    What waits unread on the thread in the router's inbox goes to the worker (B6.3), the opening
    trigger first. After an item of that thread that is over, it follows that one (B6.6).
    """
    trigger = opening.trigger
    existing = u.c.scalar(sa.select(WORK.c.id).where(WORK.c.trigger_id == trigger.id))
    if existing is not None:
        return Opened(item=read(u.c, existing), created=False)
    work = WorkId(u.new_id("work"))
    before = succession.last_over(u.c, (trigger.thread, *threads.linked(u.c, trigger.thread)))
    # who may read a predecessor's session is no cleaner than that was
    trust = min(opening.taint, before.taint) if before else opening.taint
    told = secrecy.was_told_private(u.c, router)  # the goal may say it
    session = sessions.create(
        u, kind="worker", agent=opening.agent, work=work, trust=trust, private=told
    )
    item = WorkItem(
        id=work,
        session=session,
        trigger=trigger.id,
        thread=trigger.thread,
        goal=opening.goal,
        criteria=opening.criteria,
        mandate=opening.mandate,
        destination=trigger.trigger.context.reply_to,
        code=_code(u.c, trigger),
    )
    insert(u, item)
    if before is not None:
        succession.begin(u, work, before)
    read_by = [(router, opening.taint), *([(before.session, before.taint)] if before else [])]
    for whose, known in read_by:
        if known < trigger.trust:  # what it won't take itself
            taints.note(u, session, whose, known)
    subscribe(u, session, trigger.thread)
    _learn_branch(u, item, trigger)
    _hand_over(u, trigger, session, router)
    record(
        u,
        "work.opened",
        About(trigger_id=trigger.id, session_id=session, work_id=work),
        {"goal": opening.goal, "mandate_by": opening.mandate.given_by},
    )
    return Opened(item=item, created=True)


def own_branch(work: str) -> str:
    """Return the branch that is an item's own, where the code has no branch to push to."""
    return f"upright/{work.partition('_')[2][-8:]}"


def _learn_branch(u: Unit, item: WorkItem, trigger: StoredTrigger) -> None:
    """Let checks of the item's own branch find its thread, whatever they name (B6.10)."""
    prefixes = [value for name, value in trigger.trigger.context.facts if name == "branch_keys"]
    threads.learn(u, item.thread, [f"{prefix}{own_branch(item.id)}" for prefix in prefixes])


def _code(c: sa.Connection, trigger: StoredTrigger) -> Code | None:
    """Return the code that the whole thread speaks of, the newest commit of it.

    A fork stays one, although a comment doesn't say so; and while nothing on the thread has named
    a commit of a pull request, nobody knows who pushed it: that counts as a fork, too (B14.6).
    """
    own = trigger.trigger.context.code
    if own is None:
        return None
    rows = c.scalars(
        sa.select(TRIGGER.c.body_json)
        .where(TRIGGER.c.thread_id == trigger.thread)
        .order_by(TRIGGER.c.seq.desc())
        .limit(_LOOK_BACK)
    )
    told = [code for row in rows if (code := codec.load_trigger(row).context.code) is not None]
    known = [code for code in told if code.sha and code.repository == own.repository]
    newest = own if own.sha or not known else known[0]
    number = next((code.number for code in (own, *told) if code.number is not None), None)
    unknown = number is not None and not known
    fork = unknown or any(code.fork for code in told)
    return replace(newest, number=number, fork=fork)


def insert(u: Unit, item: WorkItem) -> None:
    """Store a new item; its session is there."""
    u.c.execute(
        WORK.insert().values(
            id=item.id,
            session_id=item.session,
            trigger_id=item.trigger,
            thread_id=item.thread,
            goal=item.goal,
            criteria_json=codec.STRINGS.dump(item.criteria),
            mandate_json=codec.MANDATE.dump(item.mandate),
            destination_json=codec.DESTINATION.dump(item.destination),
            code_json=codec.CODE.dump(item.code),
            plan_json="[]",
            evidence_json="[]",
            state=item.state.value,
            revision=0,
            generation=0,
            reason="",
            created_at_ms=u.now_ms,
            changed_at_ms=u.now_ms,
        )
    )


def _hand_over(u: Unit, trigger: StoredTrigger, session: str, router: str) -> None:
    """Give the worker its opening trigger, and what came to the router on that thread since.

    That is what waits unread there, and what the router took together with the opening one or
    after it: whoever owns the thread sees all of it (B6.3). What the hub told the router itself,
    a report of another worker, stays with the router.
    """
    same_thread = (trigger.thread, *threads.linked(u.c, trigger.thread))
    opening = sa.select(TRIGGER.c.seq).where(TRIGGER.c.id == trigger.id).scalar_subquery()
    since = sa.select(TRIGGER.c.id).where(
        TRIGGER.c.thread_id.in_(same_thread),
        TRIGGER.c.seq >= opening,
        TRIGGER.c.source != HUB_SOURCE,
    )
    mine = sa.and_(DELIVERY.c.session_id == router, DELIVERY.c.trigger_id.in_(since))
    came = u.c.scalars(sa.select(DELIVERY.c.trigger_id).where(mine).order_by(DELIVERY.c.id))
    for trigger_id in dict.fromkeys([trigger.id, *came]):
        row = {"session_id": session, "trigger_id": trigger_id, "wake": True, "strategy": "queue"}
        u.c.execute(DELIVERY.insert(), row)
    u.c.execute(DELIVERY.delete().where(mine, DELIVERY.c.taken_n.is_(None)))
    sessions.wake(u, session)


def subscribe(u: Unit, session: str, thread: str) -> None:
    """Let a session follow a thread; doing it twice is no error."""
    mine = sa.and_(SUBSCRIPTION.c.session_id == session, SUBSCRIPTION.c.thread_id == thread)
    if u.c.scalar(sa.select(SUBSCRIPTION.c.session_id).where(mine)) is None:
        u.c.execute(
            SUBSCRIPTION.insert().values(
                session_id=session, thread_id=thread, created_at_ms=u.now_ms
            )
        )


def read(c: sa.Connection, work: str) -> WorkItem:
    """Read an item; UnknownIdError when there is none."""
    row = c.execute(_READ, {"work": work}).one_or_none()
    if row is None:
        raise UnknownIdError(work)
    return WorkItem(
        id=WorkId(row.id),
        session=SessionId(row.session_id),
        trigger=TriggerId(row.trigger_id),
        thread=ThreadId(row.thread_id),
        goal=row.goal,
        criteria=codec.STRINGS.load(row.criteria_json),
        mandate=codec.MANDATE.load(row.mandate_json),
        state=WorkState(row.state),
        revision=row.revision,
        generation=row.generation,
        plan=codec.PLAN.load(row.plan_json),
        evidence=codec.EVIDENCE.load(row.evidence_json),
        destination=codec.DESTINATION.load(row.destination_json),
        code=codec.CODE.load(row.code_json),
        reason=row.reason,
    )


def move(u: Unit, item: WorkItem, event: WorkEvent, *, reason: str = "") -> WorkItem:
    """Move an item that was read in this unit, with all that belongs to the move.

    Raises:
        IllegalMoveError: its state has no such move.
        InvalidError: evidence is missing.
        StaleError: it has moved since it was read; nothing was done (B11.6).
    """
    step = machine.step(item, event, revision=item.revision, reason=reason)
    moved = step.item
    values = {
        "state": moved.state.value,
        "revision": moved.revision,
        "reason": moved.reason,
        "plan_json": codec.PLAN.dump(moved.plan),
        "evidence_json": codec.EVIDENCE.dump(moved.evidence),
        "changed_at_ms": u.now_ms,
    }
    given = {f"to_{name}": value for name, value in values.items()}
    if u.c.execute(_MOVE, {"item": item.id, "seen": item.revision, **given}).rowcount != 1:
        raise StaleError(item=item.id, seen=item.revision)
    for effect in step.effects:
        _perform(u, moved, effect)
    if moved.state is not item.state:
        record(
            u,
            "work.moved",
            About(work_id=item.id, session_id=item.session),
            {"from": item.state.value, "to": moved.state.value, "reason": reason},
        )
    return moved


def save_plan(u: Unit, item: WorkItem) -> None:
    """Store an item's plan; the state does not move."""
    u.c.execute(
        WORK.update()
        .where(WORK.c.id == item.id)
        .values(plan_json=codec.PLAN.dump(item.plan), changed_at_ms=u.now_ms)
    )


def _perform(u: Unit, item: WorkItem, effect: WorkEffect) -> None:
    match effect:
        case WorkEffect.CANCEL_WAITS:
            waits.cancel(u.c, item.id)
        case WorkEffect.STOP_JOBS:
            live = (JobState.QUEUED.value, JobState.RUNNING.value)
            u.c.execute(
                JOB.update()
                .where(JOB.c.work_id == item.id, JOB.c.state.in_(live))
                .values(state=JobState.STOPPING.value)
            )
        case WorkEffect.WITHDRAW_QUESTIONS:
            requests.withdraw(u.c, work=item.id)
            held = (OutboxState.HELD.value,)
            u.c.execute(
                OUTBOX.update()
                .where(OUTBOX.c.work_id == item.id, OUTBOX.c.state.in_(held))
                .values(
                    state=OutboxState.DEAD.value,
                    reason="the work item has ended",
                    settled_at_ms=u.now_ms,
                )
            )


def woken(u: Unit, item: WorkItem) -> WorkItem:
    """Move a sleeping item to runnable; one that is awake, completing or blocked stays as it is."""
    if item.state in {*machine.WAITING.values(), WorkState.YIELDED}:
        return move(u, item, machine.Woken())
    return item


def rest(u: Unit, item: WorkItem) -> WorkItem:
    """Bring a runnable item to the waiting state that its newest open wait says, if it has one."""
    pending = waits.open_of(u.c, item.id)
    if item.state is not WorkState.RUNNABLE or not pending:
        return item
    newest = pending[-1]
    yields = newest.kind is WaitKind.SYSTEM and newest.ref.startswith(CHILD)
    event = machine.Yielded() if yields else machine.WAITS_FOR[newest.kind]
    return move(u, item, event, reason=newest.why)


def ask(u: Unit, item: WorkItem, question: str, *, deadline_s: int | None = None) -> str:
    """Ask a person, and wait for the answer; return the request's id."""
    request = requests.ask(u, requests.Asking(prompt=question, work=item.id, session=item.session))
    asked = waits.Asked(
        kind=WaitKind.OPERATOR, ref=request, why=question[:200], deadline_s=deadline_s
    )
    waits.register(u, item.id, asked)
    return request


def block(u: Unit, item: WorkItem, question: str) -> str:
    """Block an item on a person's answer: without an open question nothing would unblock it.

    One that waits for its acceptance is asked about once more, and stays where it is.
    """
    request = requests.ask(u, requests.Asking(prompt=question, work=item.id, session=item.session))
    if item.state not in {WorkState.BLOCKED, WorkState.COMPLETING}:
        move(u, item, machine.Blocked(), reason=question[:500])
    return request
