"""Intake: one transaction takes a trigger in: dedupe, thread, verdict, deliveries, waits (A3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel, Content, Context, Trigger
from upright.core import routing
from upright.core.fold import QUIET, Quiet, presses
from upright.core.gate import Judgement, Rules, Verdict, judge
from upright.core.ids import SessionId, ThreadId, TriggerId
from upright.core.mandate import Trust
from upright.core.strategy import OPERATOR_INTERRUPT, OPERATOR_MESSAGE, OPERATOR_QUESTION, Strategy
from upright.core.trigger import Disposition, Origin, People, StoredTrigger, origin
from upright.core.wait import Outcome, WaitKind, Wake
from upright.core.work import WorkState
from upright.store import codec, receipts, sessions, spill, strategy, threads, waits, work
from upright.store.events import About, record, record_all
from upright.store.sessions import Woken
from upright.store.tables import CURSOR, DEDUPE, DELIVERY, PAYLOAD, SESSION, TRIGGER
from upright.store.unit import Unit

HUB_SOURCE: Final = work.HUB_SOURCE
FROM_OPERATORS: Final = (OPERATOR_MESSAGE, OPERATOR_INTERRUPT, OPERATOR_QUESTION)
HUB: Final = Actor(id="hub", name="hub", kind=ActorKind.SYSTEM)


# statements of the hot path are made once: building one costs more than running it
_SEEN: Final = (
    sa.select(TRIGGER.c.id, TRIGGER.c.disposition, TRIGGER.c.reason)
    .join(DEDUPE, DEDUPE.c.trigger_id == TRIGGER.c.id)
    .where(
        DEDUPE.c.source == sa.bindparam("source"),
        DEDUPE.c.key.in_(sa.bindparam("keys", expanding=True)),
    )
    .limit(1)
)
_ADD_PAYLOAD: Final = PAYLOAD.insert()
_ADD_TRIGGER: Final = TRIGGER.insert()
_ADD_KEY: Final = DEDUPE.insert()
_ADD_DELIVERY: Final = DELIVERY.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What intake decides by; a new one takes effect for the next trigger, whole (B3.4).

    ``routes`` is False while no model is configured: nothing is handed to the router then.
    ``quiet`` is the window in which what comes is folded (B2.5).
    """

    rules: Rules
    people: People
    routes: bool
    spill_bytes: int = 0  # a larger payload was stored as a file beforehand; 0: none was
    quiet: Quiet = QUIET


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What became of one trigger; a duplicate has the first one's id.

    ``woke`` are the sessions that it wakes; of those, ``folded`` take it at the end of their quiet
    window, and ``sooner`` are ready earlier than the engine knew.
    """

    id: TriggerId
    duplicate: bool
    disposition: Disposition
    reason: str
    woke: tuple[SessionId, ...] = ()
    folded: tuple[SessionId, ...] = ()
    sooner: tuple[SessionId, ...] = ()


def accept(
    u: Unit, source: str, triggers: Sequence[Trigger], policy: Policy, *, cursor: str | None = None
) -> list[Accepted]:
    """Take in what a source brought, in its order, and the cursor that covers it."""
    accepted = [_accept_one(u, source, trigger, policy) for trigger in triggers]
    if cursor is not None:
        u.c.execute(CURSOR.delete().where(CURSOR.c.source == source))
        u.c.execute(CURSOR.insert().values(source=source, value=cursor))
    return accepted


def _accept_one(u: Unit, source: str, trigger: Trigger, policy: Policy) -> Accepted:
    seen = _seen(u.c, source, trigger.dedupe)
    if seen is not None:
        return seen
    who = origin(_as_ours(u.c, source, trigger), source, policy.people)
    trigger = replace(trigger, actor=who.actor)
    judgement = judge(policy.rules, source, trigger, who)
    home = threads.place(u, source, trigger, who.trust)
    followers = threads.followers(u.c, home)
    asks = judgement.verdict is Verdict.EXPLICIT and not followers
    router = sessions.ensure_router(u) if asks and policy.routes else None
    way = routing.route(judgement, who, followers, router)
    fate = _Fate(thread=home, who=who, judgement=judgement, way=way, spill_bytes=policy.spill_bytes)
    stored = _insert(u, source, trigger, fate)
    urge = _urge(stored, judgement, policy)
    woken = {one.session: _deliver(u, stored, one, urge) for one in way.deliveries}
    about = About(trigger_id=stored.id)
    told = {"disposition": way.disposition, "reason": way.reason, "to": len(way.deliveries)}
    record_all(
        u,
        ("gate.judged", about, {"verdict": judgement.verdict, "rule": judgement.rule}),
        ("intake.accepted", about, told),
    )
    return _accepted(stored, way, woken)


def _accepted(
    stored: StoredTrigger, way: routing.Route, woken: Mapping[SessionId, Woken]
) -> Accepted:
    wakes = tuple(delivery.session for delivery in way.deliveries if delivery.wake)
    return Accepted(
        id=stored.id,
        duplicate=False,
        disposition=way.disposition,
        reason=way.reason,
        woke=wakes,
        folded=tuple(session for session in wakes if woken[session].folded),
        sooner=tuple(session for session in wakes if woken[session].sooner),
    )


def _seen(c: sa.Connection, source: str, keys: Sequence[str]) -> Accepted | None:
    """Find an earlier trigger with any of these keys (B2.2)."""
    row = c.execute(_SEEN, {"source": source, "keys": list(keys)}).one_or_none()
    if row is None:
        return None
    disposition = Disposition(row.disposition)
    return Accepted(
        id=TriggerId(row.id), duplicate=True, disposition=disposition, reason=row.reason
    )


def _as_ours(c: sa.Connection, source: str, trigger: Trigger) -> Trigger:
    """Recognise our own output by its receipt, whoever the provider says it is by (B1.5)."""
    native = dict(trigger.context.facts).get("native_id", "")
    if not native or not receipts.ours(c, source, {native}):
        return trigger
    return replace(trigger, actor=replace(trigger.actor, kind=ActorKind.SELF))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fate:
    """All that was decided of a trigger before it is stored."""

    thread: ThreadId
    who: Origin
    judgement: Judgement
    way: routing.Route
    spill_bytes: int = 0


def _insert(u: Unit, source: str, trigger: Trigger, fate: _Fate) -> StoredTrigger:
    who, judgement, way, thread = fate.who, fate.judgement, fate.way, fate.thread
    payload = u.new_id("payload")
    in_a_file = 0 < fate.spill_bytes < len(trigger.raw)
    u.c.execute(
        _ADD_PAYLOAD,
        {
            "id": payload,
            "media_type": trigger.raw_type,
            "body": b"" if in_a_file else trigger.raw,
            "size": len(trigger.raw),
            "spilled": spill.digest(trigger.raw) if in_a_file else "",
            "created_at_ms": u.now_ms,
        },
    )
    made = TriggerId(u.new_id("trigger"))
    occurred = trigger.occurred_at
    u.c.execute(
        _ADD_TRIGGER,
        {
            "id": made,
            "source": source,
            "kind": trigger.kind,
            "thread_id": thread,
            "actor_kind": who.actor.kind.value,
            "actor_id": who.actor.id,
            "person": "",
            "urgent": judgement.urgent,
            "trust": int(who.trust),
            "body_json": codec.dump_trigger(trigger),
            "payload_id": payload,
            "occurred_at_ms": int(occurred.timestamp() * 1000) if occurred else None,
            "received_at_ms": u.now_ms,
            "verdict": judgement.verdict.value,
            "rule": judgement.rule,
            "rules_version": judgement.version,
            "disposition": way.disposition.value,
            "reason": way.reason,
        },
    )
    keys = [{"source": source, "key": k, "trigger_id": made} for k in dict.fromkeys(trigger.dedupe)]
    if keys:
        u.c.execute(_ADD_KEY, keys)
    return StoredTrigger(
        id=made,
        source=source,
        thread=thread,
        trigger=trigger,
        trust=who.trust,
        received_at_ms=u.now_ms,
        payload=payload,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Urge:
    """How a delivery wakes: at once, or by the quiet window; and whether a rule calls it urgent."""

    pressing: bool
    quiet: Quiet
    urgent: bool = False


def _urge(stored: StoredTrigger, judgement: Judgement, policy: Policy) -> _Urge:
    edits = bool(stored.trigger.context.edit_of)
    pressing = presses(judgement, stored.trigger.actor.kind, edits=edits)
    return _Urge(pressing=pressing, quiet=policy.quiet, urgent=judgement.urgent)


_AT_ONCE: Final = _Urge(pressing=True, quiet=QUIET)


def _deliver(u: Unit, stored: StoredTrigger, delivery: routing.Delivery, urge: _Urge) -> Woken:
    """Put a trigger into an inbox; one that wakes is told by what strategy it is taken (B9).

    A blocked item's session is woken when a person has spoken.
    """
    row = {"session_id": delivery.session, "trigger_id": stored.id, "wake": delivery.wake}
    woken = Woken(folded=False, sooner=False)
    if not delivery.wake:
        u.c.execute(_ADD_DELIVERY, {**row, "strategy": Strategy.QUEUE.value, "folded": False})
        return woken
    told = strategy.chosen(u, stored, delivery.session, urgent=urge.urgent)
    if told.work is None or work.read(u.c, told.work).state is not WorkState.BLOCKED:
        woken = sessions.fold(u, delivery.session, urge.quiet, pressing=urge.pressing)
    taken = {"strategy": told.strategy.value, "folded": woken.folded}
    u.c.execute(_ADD_DELIVERY, {**row, **taken})
    if told.work is not None and stored.source != HUB_SOURCE:
        match_external(u, told.work, stored)
    return woken


def match_external(u: Unit, work_id: str, stored: StoredTrigger) -> None:
    """Match a trigger with an item's waits for its thread or a linked one; note what came of it.

    What the hub itself says is no news of the thread.
    """
    for thread in (stored.thread, *threads.linked(u.c, stored.thread)):
        found = waits.settle(u.c, work_id, Wake(kind=WaitKind.EXTERNAL, ref=thread))
        if found.outcome is Outcome.NONE:
            continue
        about = About(trigger_id=stored.id, work_id=work_id)
        record(u, "wait.matched", about, {"outcome": found.outcome, "thread": thread})
        if found.outcome is Outcome.MATCH:
            return


# ------------------------------------------------------------------ what the hub itself says
@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A trigger that the hub makes for one session: a job's end, an answer, a deadline."""

    kind: str
    channel: Channel
    title: str
    text: str
    actor: Actor = HUB
    trust: Trust = Trust.OPERATOR
    dedupe: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def notify(
    u: Unit, session: str, thread: ThreadId, notice: Notice, *, wake: bool = True
) -> TriggerId:
    """Store a notice and deliver it to one session, once for each dedupe key."""
    seen = _seen(u.c, HUB_SOURCE, notice.dedupe)
    if seen is not None:
        return seen.id
    trigger = Trigger(
        kind=notice.kind,
        channel=notice.channel,
        actor=notice.actor,
        content=Content(title=notice.title, text=notice.text),
        context=Context(thread=thread, facts=notice.facts),
        dedupe=notice.dedupe,
    )
    who = Origin(actor=notice.actor, trust=notice.trust, listed=False)
    delivery = routing.Delivery(session=SessionId(session), wake=wake)
    reason = f"for its own session: {notice.title}"
    judgement = Judgement(verdict=Verdict.EXPLICIT, rule="hub", reason=reason, version="-")
    disposition = Disposition.WOKE if wake else Disposition.JOINED
    way = routing.Route(disposition=disposition, deliveries=(delivery,), reason=reason)
    fate = _Fate(thread=thread, who=who, judgement=judgement, way=way)
    stored = _insert(u, HUB_SOURCE, trigger, fate)
    _deliver(u, stored, delivery, _AT_ONCE)
    record(
        u, "intake.accepted", About(trigger_id=stored.id, session_id=session), {"kind": notice.kind}
    )
    return stored.id


def read(c: sa.Connection, trigger: str) -> StoredTrigger | None:
    """Read a trigger as it was stored, without its raw bytes."""
    row = c.execute(sa.select(TRIGGER).where(TRIGGER.c.id == trigger)).one_or_none()
    return None if row is None else _read(row)


def _read(row: sa.Row[tuple[object, ...]]) -> StoredTrigger:
    return StoredTrigger(
        id=TriggerId(row.id),
        source=row.source,
        thread=ThreadId(row.thread_id),
        trigger=codec.load_trigger(row.body_json),
        trust=Trust(row.trust),
        received_at_ms=row.received_at_ms,
        payload=row.payload_id,
    )


def unread(c: sa.Connection, session: str) -> list[StoredTrigger]:
    """Read what a session has not taken yet, oldest first."""
    rows = c.execute(
        sa.select(TRIGGER)
        .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
        .where(DELIVERY.c.session_id == session, DELIVERY.c.taken_n.is_(None))
        .order_by(TRIGGER.c.seq)
    )
    return [_read(row) for row in rows]


def taken(c: sa.Connection, session: str, triggers: Sequence[StoredTrigger], entry: int) -> None:
    """Note that an entry of the transcript took these triggers: that is their acknowledgement."""
    c.execute(
        DELIVERY.update()
        .where(
            DELIVERY.c.session_id == session,
            DELIVERY.c.trigger_id.in_([trigger.id for trigger in triggers]),
        )
        .values(taken_n=entry)
    )


def fall_back(u: Unit, session: str) -> list[SessionId]:
    """Give the unread tail of an ended session to the router (B6.4, B6.6); return who is woken.

    Context that woke nobody, what the hub told that session alone, and what another live session
    was given stay away; an operator's word does not.
    """
    tail = _ownerless(u.c, session)
    u.c.execute(
        DELIVERY.delete().where(DELIVERY.c.session_id == session, DELIVERY.c.taken_n.is_(None))
    )
    router = sessions.router(u.c)
    if router is None or not tail:
        return []
    for one in tail:
        row = {"session_id": router, "trigger_id": one, "wake": True, "strategy": "queue"}
        u.c.execute(_ADD_DELIVERY, row)
    sessions.wake(u, router)
    return [router]


def _ownerless(c: sa.Connection, session: str) -> list[str]:
    """Return what nobody will see once *session* has ended, oldest first."""
    other = DELIVERY.alias()
    seen_elsewhere = sa.exists().where(
        other.c.trigger_id == TRIGGER.c.id,
        other.c.session_id != session,
        other.c.session_id == SESSION.c.id,
        SESSION.c.ended_at_ms.is_(None),
    )
    left = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.taken_n.is_(None), DELIVERY.c.wake)
    from_outside = sa.or_(TRIGGER.c.source != HUB_SOURCE, TRIGGER.c.kind.in_(FROM_OPERATORS))
    found = (
        sa.select(TRIGGER.c.id)
        .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
        .where(left, from_outside, sa.not_(seen_elsewhere))
        .order_by(TRIGGER.c.seq)
    )
    return list(c.scalars(found))


def was_delivered(c: sa.Connection, session: str, trigger: str) -> bool:
    """Say whether a session was ever given this trigger, or handed it on to a worker."""
    mine = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.trigger_id == trigger)
    return c.scalar(sa.select(DELIVERY.c.id).where(mine)) is not None
