"""Outbox as rows: effects committed with their cause, claimed, sent once, settled (B15)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Channel, Destination, EffectClass, Receipt
from upright.core import outbox as machine
from upright.core.backoff import Backoff
from upright.core.ids import OutboxId, SessionId
from upright.core.mandate import Trust
from upright.core.outbox import OutboxItem, OutboxState
from upright.core.work import WorkState
from upright.store import codec, echo, intake, receipts, threads, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.ledger import Cost, charge
from upright.store.tables import EVENT, OUTBOX, SESSION
from upright.store.unit import Unit

_ABANDONED: Final = Backoff(max_tries=8)
"""How often an effect may take its sender down with it."""
_EXPIRE_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An effect to be committed: its destination and its key are fixed here (B15.1)."""

    session: str
    work: str | None
    trigger: str | None
    effect_class: EffectClass
    destination: Destination
    text: str
    idempotency_key: str
    state: OutboxState = OutboxState.PENDING
    life_ms: int | None = None
    turn: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An effect as it is stored."""

    id: OutboxId
    session: str
    work: str | None
    trigger: str | None
    destination: Destination
    text: str
    idempotency_key: str
    digest: str
    effect_class: EffectClass
    item: OutboxItem
    receipt_id: str
    receipt_url: str


def digest(destination: Destination, text: str) -> str:
    """Return the SHA-256 of exactly what would become visible, and where (B14.3)."""
    exact = json.dumps([codec.DESTINATION.dump(destination), text], ensure_ascii=False)
    return hashlib.sha256(exact.encode()).hexdigest()


def lane(destination: Destination) -> str:
    """Return what keeps its order: one destination of one source."""
    return hashlib.sha256(codec.DESTINATION.dump(destination).encode()).hexdigest()[:16]


def put(u: Unit, draft: Draft) -> Stored:
    """Store an effect; the same key again gives the first one back."""
    same = sa.select(OUTBOX.c.id).where(OUTBOX.c.idempotency_key == draft.idempotency_key)
    existing = u.c.scalar(same)
    if existing is not None:
        return read(u.c, existing)
    made = u.new_id("outbox")
    u.c.execute(
        OUTBOX.insert().values(
            id=made,
            session_id=draft.session,
            work_id=draft.work,
            trigger_id=draft.trigger,
            effect_class=draft.effect_class.value,
            source=draft.destination.source,
            destination_json=codec.DESTINATION.dump(draft.destination),
            lane=lane(draft.destination),
            text=draft.text,
            idempotency_key=draft.idempotency_key,
            digest=digest(draft.destination, draft.text),
            state=draft.state.value,
            tries=0,
            may_be_visible=False,
            due_at_ms=u.now_ms,
            expires_at_ms=None if draft.life_ms is None else u.now_ms + draft.life_ms,
            reason="",
            receipt_id="",
            receipt_url="",
            created_at_ms=u.now_ms,
        )
    )
    about = About(
        trigger_id=draft.trigger,
        session_id=draft.session,
        work_id=draft.work,
        turn_id=draft.turn or None,
        outbox_id=made,
    )
    record(u, "effect.committed", about, {"state": draft.state.value})
    return read(u.c, made)


def read(c: sa.Connection, outbox: str) -> Stored:
    """Read an effect; UnknownIdError when there is none."""
    row = c.execute(sa.select(OUTBOX).where(OUTBOX.c.id == outbox)).one_or_none()
    if row is None:
        raise UnknownIdError(outbox)
    destination = codec.DESTINATION.load(row.destination_json)
    if destination is None:
        raise UnknownIdError(outbox)
    return Stored(
        id=OutboxId(row.id),
        session=row.session_id,
        work=row.work_id,
        trigger=row.trigger_id,
        destination=destination,
        text=row.text,
        idempotency_key=row.idempotency_key,
        digest=row.digest,
        effect_class=EffectClass(row.effect_class),
        item=OutboxItem(
            state=OutboxState(row.state),
            tries=row.tries,
            due_at_ms=row.due_at_ms,
            expires_at_ms=row.expires_at_ms,
            reason=row.reason,
            may_be_visible=row.may_be_visible,
        ),
        receipt_id=row.receipt_id,
        receipt_url=row.receipt_url,
    )


_MINE: Final = sa.and_(OUTBOX.c.work_id == sa.bindparam("item"), OUTBOX.c.session_id != "")
_OF_WORK: Final = sa.select(OUTBOX.c.id).where(_MINE)


def of_work(c: sa.Connection, item: str) -> list[Stored]:
    """Read an item's effects, oldest first; not what the hub itself says to people of it."""
    return [read(c, one) for one in sorted(c.scalars(_OF_WORK, {"item": item}))]


# ------------------------------------------------------------------ the queue
PATIENCE_MS: Final = 60_000
"""An effect that waits longer than this for its next try lets those behind it in its lane pass."""
_NOW: Final = sa.bindparam("now_ms", type_=sa.BigInteger())
_PENDING: Final = OUTBOX.c.state == OutboxState.PENDING.value
_OLDER: Final = OUTBOX.alias("older")
_BEHIND: Final = sa.exists().where(
    _OLDER.c.lane == OUTBOX.c.lane,
    _OLDER.c.settled_at_ms.is_(None),
    _OLDER.c.id < OUTBOX.c.id,
    sa.or_(
        _OLDER.c.state == OutboxState.SENDING.value,
        sa.and_(
            _OLDER.c.state == OutboxState.PENDING.value,
            _OLDER.c.due_at_ms <= _NOW + PATIENCE_MS,
        ),
    ),
)
_BUSY: Final = sa.exists().where(
    _OLDER.c.lane == OUTBOX.c.lane,
    _OLDER.c.settled_at_ms.is_(None),
    _OLDER.c.state == OutboxState.SENDING.value,
)
_HEADS: Final = (
    sa.select(OUTBOX.c.id)
    .where(_PENDING, OUTBOX.c.due_at_ms <= _NOW, sa.not_(_BEHIND), sa.not_(_BUSY))
    .order_by(OUTBOX.c.created_at_ms, OUTBOX.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer()))
)
_LATE: Final = (
    sa.select(OUTBOX.c.id)
    .where(_PENDING, OUTBOX.c.expires_at_ms <= _NOW)
    .order_by(OUTBOX.c.id)
    .limit(_EXPIRE_AT_ONCE)
)
_NEXT_DUE: Final = sa.select(sa.func.min(OUTBOX.c.due_at_ms)).where(
    _PENDING, OUTBOX.c.due_at_ms > _NOW
)
_NEXT_LATE: Final = sa.select(sa.func.min(OUTBOX.c.expires_at_ms)).where(_PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a sender may send now, oldest first, and the sessions whose effects were too late."""

    taken: tuple[Stored, ...]
    expired: tuple[SessionId, ...]

    def __bool__(self) -> bool:
        """Whether there was anything to claim."""
        return bool(self.taken or self.expired)


def claim_due(u: Unit, limit: int) -> Claims:
    """Claim what is due: of each lane only the oldest that is not settled (B15).

    What is too late expires instead of going out, due or not. Held effects, which wait for a
    person, and one whose next try is more than ``PATIENCE_MS`` away hold up nobody.
    """
    late = [read(u.c, one) for one in u.c.scalars(_LATE, {"now_ms": u.now_ms}).all()]
    for stored in late:
        _settle(u, stored, machine.step(stored.item, machine.TooLate(), now_ms=u.now_ms))
    claimed, lanes = list[Stored](), set[str]()
    for found in u.c.scalars(_HEADS, {"now_ms": u.now_ms, "most": limit}).all():
        stored = read(u.c, found)
        if machine.expired(stored.item, u.now_ms) or lane(stored.destination) in lanes:
            continue  # more have expired than one look takes; or an impatient one passed its head
        lanes.add(lane(stored.destination))
        _store(u, stored, machine.step(stored.item, machine.Claimed(), now_ms=u.now_ms))
        claimed.append(read(u.c, found))
    expired = tuple(SessionId(stored.session) for stored in late)
    return Claims(taken=tuple(claimed), expired=expired)


def next_due_ms(c: sa.Connection, now_ms: int) -> int | None:
    """Return when a sender should look again: a pending effect becomes due, or too late.

    One that is due already and was not claimed waits for another of its lane, whose end is told.
    """
    times: list[int | None] = [c.scalar(_NEXT_DUE, {"now_ms": now_ms}), c.scalar(_NEXT_LATE)]
    return min((at for at in times if at is not None), default=None)


def abandon_all(u: Unit) -> int:
    """Take back what a dead sender had claimed; the next try looks before it sends."""
    sending = sa.select(OUTBOX.c.id).where(OUTBOX.c.state == OutboxState.SENDING.value)
    for stored in (found := [read(u.c, one) for one in u.c.scalars(sending).all()]):
        step = machine.step(stored.item, machine.Abandoned(), now_ms=u.now_ms, backoff=_ABANDONED)
        step = _unless_cancelled(u, stored, step)
        if step.state in machine.TERMINAL:
            _settle(u, stored, step)
        else:
            _store(u, stored, step)
    return len(found)


def delivered(u: Unit, stored: Stored, receipt: Receipt, seconds: float) -> None:
    """Store the receipt: the effect is visible, also to the others that follow its thread."""
    item = machine.step(stored.item, machine.Delivered(), now_ms=u.now_ms)
    u.c.execute(
        OUTBOX.update()
        .where(OUTBOX.c.id == stored.id)
        .values(receipt_id=receipt.provider_id, receipt_url=receipt.url)
    )
    receipts.keep(u.c, stored.destination.source, stored.id, receipt.provider_id)
    echo.tell(u, stored, receipt)
    _settle(u, stored, item, data={"receipt": receipt.provider_id, "found": receipt.found})
    charge(u, Cost(kind="effect", session_id=stored.session, work_id=stored.work, seconds=seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """A try that did not deliver: the event, why, and how long to wait before the next.

    Without *backoff* it is tried until its own time is up; with it, as often as that allows.
    """

    event: machine.OutboxEvent
    reason: str
    wait_s: float = 0.0
    backoff: Backoff | None = None


def set_back(u: Unit, stored: Stored, setback: Setback) -> OutboxState:
    """Store a try that did not deliver; a terminal state is told to the session."""
    item = machine.step(
        stored.item,
        setback.event,
        now_ms=u.now_ms,
        wait_s=setback.wait_s,
        backoff=setback.backoff,
        reason=setback.reason[:500],
    )
    item = _unless_cancelled(u, stored, item)
    if item.state in machine.TERMINAL:
        _settle(u, stored, item)
    else:
        _store(u, stored, item)
    return item.state


def release(u: Unit, outbox: str) -> None:
    """Let a held effect go: a person approved exactly this; its life begins now."""
    stored = read(u.c, outbox)
    item = machine.step(stored.item, machine.Released(), now_ms=u.now_ms)
    life_ms = u.terms.life_ms(stored.effect_class)
    _store(u, stored, replace(item, due_at_ms=u.now_ms, expires_at_ms=u.now_ms + life_ms))


def discard(u: Unit, outbox: str, reason: str) -> None:
    """Drop a held or pending effect for good; its session is told."""
    stored = read(u.c, outbox)
    step = machine.step(stored.item, machine.Discarded(), now_ms=u.now_ms, reason=reason)
    _settle(u, stored, step)


def keep_back(u: Unit, item: str, reason: str) -> None:
    """Drop all that an item wanted to send and that nobody is sending now (B15).

    What is on its way can't be called back. What may be visible from an earlier try is UNKNOWN
    then, for a person to see.
    """
    mine = sa.select(OUTBOX.c.id).where(OUTBOX.c.work_id == item, OUTBOX.c.settled_at_ms.is_(None))
    unsent = mine.where(OUTBOX.c.state.in_((OutboxState.HELD.value, OutboxState.PENDING.value)))
    for found in u.c.scalars(unsent.order_by(OUTBOX.c.id)).all():
        discard(u, found, reason)


def _unless_cancelled(u: Unit, stored: Stored, item: OutboxItem) -> OutboxItem:
    """Give up a try that would be made again for an item that was cancelled meanwhile."""
    again = item.state is OutboxState.PENDING and stored.work is not None
    if not again or work.read(u.c, str(stored.work)).state is not WorkState.CANCELLED:
        return item
    reason = f"{stored.work} was cancelled meanwhile; {item.reason}".rstrip("; ")
    return machine.step(item, machine.Discarded(), now_ms=u.now_ms, reason=reason[:500])


def retry(u: Unit, outbox: str, *, by: str, yes: bool) -> Stored:
    """Send again what was given up, has expired, or may be visible already.

    Raises:
        UnknownIdError: there is no such effect.
        IllegalMoveError: it was sent, or is still on its way.
        NotNowError: it may be visible, and *yes* does not say that a person has looked (B15.2).
    """
    stored = read(u.c, outbox)
    life_ms = u.terms.life_ms(stored.effect_class)
    item = machine.revive(stored.item, now_ms=u.now_ms, life_ms=life_ms)
    if item.may_be_visible and not yes:
        raise NotNowError(outbox, "it may be visible already: look there first, then say yes")
    _store(u, stored, item)
    about = About(session_id=stored.session, work_id=stored.work, outbox_id=stored.id)
    record(u, "effect.retried", about, {"was": stored.item.state.value, "by": by})
    return read(u.c, outbox)


def _store(u: Unit, stored: Stored, item: OutboxItem) -> None:
    u.c.execute(
        OUTBOX.update()
        .where(OUTBOX.c.id == stored.id)
        .values(
            state=item.state.value,
            tries=item.tries,
            may_be_visible=item.may_be_visible,
            due_at_ms=item.due_at_ms,
            expires_at_ms=item.expires_at_ms,
            reason=item.reason,
            settled_at_ms=u.now_ms if item.state in machine.TERMINAL else None,
        )
    )


def _settle(
    u: Unit, stored: Stored, item: OutboxItem, *, data: dict[str, object] | None = None
) -> None:
    """Store a terminal state, and tell the session unless all went well."""
    _store(u, stored, item)
    about = About(session_id=stored.session, work_id=stored.work, outbox_id=stored.id)
    record(u, "effect.settled", about, {"state": item.state.value, **(data or {})})
    alive = u.c.scalar(
        sa.select(SESSION.c.id).where(
            SESSION.c.id == stored.session, SESSION.c.ended_at_ms.is_(None)
        )
    )
    if alive is None or (item.state is OutboxState.SENT and not _was_told(u, stored.id)):
        return
    notice = intake.Notice(
        kind=f"effect.{item.state.value}",
        channel=Channel.JOB,
        title=f"{stored.id} is {item.state.value}",
        text=item.reason,
        trust=Trust.MEMBER,  # a provider's words may be in it
        dedupe=(f"effect:{stored.id}:{item.state.value}:{u.now_ms}",),
        facts=(("outbox", stored.id), ("state", item.state.value)),
    )
    own = work.read(u.c, stored.work).thread if stored.work else threads.own(u, stored.session)
    intake.notify(u, stored.session, own, notice)


def _was_told(u: Unit, outbox: str) -> bool:
    """Say whether the session believes that it failed: a person took it up again since."""
    retried = sa.and_(EVENT.c.outbox_id == outbox, EVENT.c.stop == "effect.retried")
    return u.c.scalar(sa.select(EVENT.c.seq).where(retried).limit(1)) is not None
