"""Intake: one transaction takes a trigger in: dedupe, thread, verdict, deliveries, waits (A3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel, Content, Context, Trigger
from upright.core import edit, routing
from upright.core.fold import QUIET, Quiet, presses
from upright.core.gate import Judgement, Rules, Verdict
from upright.core.ids import SessionId, ThreadId, TriggerId
from upright.core.mandate import Trust
from upright.core.strategy import OPERATOR_INTERRUPT, OPERATOR_MESSAGE, OPERATOR_QUESTION, Strategy
from upright.core.trigger import Disposition, Origin, People, StoredTrigger
from upright.core.work import WorkState
from upright.store import (
    arrivals,
    codec,
    matching,
    sessions,
    strategy,
    tail,
    threads,
    work,
)
from upright.store.answering import NOBODY, Answering, Followed
from upright.store.arrivals import Arrival, Draft, Seen
from upright.store.events import About, Stop, record, record_all
from upright.store.folding import Woken, fold
from upright.store.tables import DELIVERY, SESSION, TRIGGER
from upright.store.unit import Unit

HUB_SOURCE: Final = work.HUB_SOURCE
FROM_OPERATORS: Final = (OPERATOR_MESSAGE, OPERATOR_INTERRUPT, OPERATOR_QUESTION)
HUB: Final = Actor(id="hub", name="hub", kind=ActorKind.SYSTEM)


# statements of the hot path are made once: building one costs more than running it
_ADD_DELIVERY: Final = DELIVERY.insert()
_UNREAD: Final = (
    sa.select(TRIGGER)
    .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
    .where(DELIVERY.c.session_id == sa.bindparam("session"), DELIVERY.c.taken_n.is_(None))
    .order_by(TRIGGER.c.seq)
)
_READ: Final = sa.select(TRIGGER).where(TRIGGER.c.id == sa.bindparam("trigger"))
_GIVEN: Final = sa.select(DELIVERY.c.id).where(
    DELIVERY.c.session_id == sa.bindparam("session"),
    DELIVERY.c.trigger_id == sa.bindparam("trigger"),
)
_TAKEN: Final = (
    DELIVERY.update()
    .where(
        DELIVERY.c.session_id == sa.bindparam("session"),
        DELIVERY.c.trigger_id.in_(sa.bindparam("found", expanding=True)),
    )
    .values(taken_n=sa.bindparam("entry"))
)


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
    passes: routing.PassThrough = routing.PassThrough.ALL
    answering: Answering = NOBODY


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
    arrival = Arrival(source=source, triggers=triggers, cursor=cursor)
    (accepted,) = accept_all(u, [arrival], policy)
    return accepted


def accept_each(
    u: Unit, several: Sequence[Arrival], policy: Policy
) -> list[list[Accepted] | Exception]:
    """Take in what several sources brought; what one of them can't store harms no other.

    Together, if that works; else each by itself, and whose fault it was gets the error. An error
    of the database itself is nobody's fault: it is raised.
    """
    try:
        return [*u.attempt(lambda: accept_all(u, several, policy))]
    except Exception as error:
        if len(several) == 1 or _of_the_database(error):
            raise
    return [_alone(u, arrival, policy) for arrival in several]


def _alone(u: Unit, arrival: Arrival, policy: Policy) -> list[Accepted] | Exception:
    try:
        return u.attempt(lambda: accept_all(u, [arrival], policy))[0]
    except Exception as error:
        if _of_the_database(error):
            raise
        return error


def _of_the_database(error: Exception) -> bool:
    """Say whether an error is the database's, so that the whole unit must be given up."""
    return isinstance(error, sa.exc.DBAPIError) and not isinstance(error, sa.exc.DataError)


def accept_all(u: Unit, several: Sequence[Arrival], policy: Policy) -> list[list[Accepted]]:
    """Take in what several sources brought, as one after the other, by a few statements."""
    found = arrivals.drafts(u, several, policy.rules, policy.people)
    new = dict.fromkeys(one for each in found for one in each if isinstance(one, Draft))
    following = threads.all_followers(u.c, {draft.thread for draft in new})
    ways, followed = dict[TriggerId, routing.Route](), dict[TriggerId, Followed]()
    for draft in new:
        if answer := policy.answering.followed(u, draft, policy.rules, policy.people):
            followed[draft.id], ways[draft.id] = answer, answer.route
        else:
            ways[draft.id] = _way(u, draft, following[draft.thread], policy=policy, ways=ways)
    arrivals.insert(u, [(one, ways[one.id]) for one in new], spill_bytes=policy.spill_bytes)
    _trace(u, new, ways)
    first = {one.id: _hand_out(u, one, ways[one.id], policy) for one in new}
    for one, answer in followed.items():
        first[one] = replace(first[one], sooner=(answer.woke,) if answer.woke else ())
    arrivals.move_cursors(u, several)
    return [[_answer(one, first, ways) for one in each] for each in found]


def _way(
    u: Unit,
    draft: Draft,
    followers: tuple[SessionId, ...],
    *,
    policy: Policy,
    ways: Mapping[TriggerId, routing.Route],
) -> routing.Route:
    """Decide where a new trigger goes. An edit opens nothing: see ``core.edit`` (B1.4)."""
    if draft.trigger.context.edit_of and not followers:
        return _way_of_edit(u, draft, ways)
    asks = draft.judgement.verdict is Verdict.EXPLICIT
    asked = policy.passes is not routing.PassThrough.ALL if followers else asks
    router = sessions.ensure_router(u) if asked and policy.routes else None
    return routing.route(draft.judgement, draft.who, followers, router, passes=policy.passes)


def _way_of_edit(u: Unit, draft: Draft, ways: Mapping[TriggerId, routing.Route]) -> routing.Route:
    judgement, actor = draft.judgement, draft.who.actor.kind
    match draft.edits:
        case None:
            return edit.route(judgement, actor, None, ())
        case Draft(id=changed):  # it came in the same batch: nobody has it yet
            given = tuple(delivery.session for delivery in ways[changed].deliveries)
            return edit.route(judgement, actor, ways[changed].disposition, given)
        case Seen(id=changed, disposition=disposition):
            return edit.route(judgement, actor, disposition, _readers(u.c, changed))


def _readers(c: sa.Connection, trigger: TriggerId) -> tuple[SessionId, ...]:
    """Return the live sessions that were given a trigger."""
    live = sa.and_(SESSION.c.id == DELIVERY.c.session_id, SESSION.c.ended_at_ms.is_(None))
    given = sa.select(SESSION.c.id).join(DELIVERY, live).where(DELIVERY.c.trigger_id == trigger)
    return tuple(SessionId(one) for one in c.scalars(given.order_by(DELIVERY.c.id)))


def _trace(u: Unit, new: Iterable[Draft], ways: Mapping[TriggerId, routing.Route]) -> None:
    stops: list[Stop] = []
    for draft in new:
        about, way, judgement = About(trigger_id=draft.id), ways[draft.id], draft.judgement
        told = {"disposition": way.disposition, "reason": way.reason, "to": len(way.deliveries)}
        stops.append(("gate.judged", about, {"verdict": judgement.verdict, "rule": judgement.rule}))
        stops.append(("intake.accepted", about, told))
    if stops:
        record_all(u, *stops)


def _hand_out(u: Unit, draft: Draft, way: routing.Route, policy: Policy) -> Accepted:
    """Deliver a trigger that is stored, and wake whom it wakes."""
    edits = bool(draft.trigger.context.edit_of)
    pressing = presses(draft.judgement, draft.who.actor.kind, edits=edits)
    urge = _Urge(pressing=pressing, quiet=policy.quiet, urgent=draft.judgement.urgent)
    stored = draft.stored(u.now_ms)
    woken = {one.session: _deliver(u, stored, one, urge) for one in way.deliveries}
    wakes = tuple(delivery.session for delivery in way.deliveries if delivery.wake)
    return Accepted(
        id=draft.id,
        duplicate=False,
        disposition=way.disposition,
        reason=way.reason,
        woke=wakes,
        folded=tuple(session for session in wakes if woken[session].folded),
        sooner=tuple(session for session in wakes if woken[session].sooner),
    )


def _answer(
    one: Seen | Draft,
    first: dict[TriggerId, Accepted],
    ways: Mapping[TriggerId, routing.Route],
) -> Accepted:
    """Say what became of a trigger; its draft is told of once, and a duplicate after that."""
    if one.id in first:
        return first.pop(one.id)
    fate = one if isinstance(one, Seen) else ways[one.id]
    return Accepted(id=one.id, duplicate=True, disposition=fate.disposition, reason=fate.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Urge:
    """How a delivery wakes: at once, or by the quiet window; and whether a rule calls it urgent."""

    pressing: bool
    quiet: Quiet
    urgent: bool = False


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
        woken = fold(u, delivery.session, urge.quiet, pressing=urge.pressing)
    taken = {"strategy": told.strategy.value, "folded": woken.folded}
    u.c.execute(_ADD_DELIVERY, {**row, **taken})
    if told.work is not None and stored.source != HUB_SOURCE:
        matching.match_external(u, told.work, stored)
    return woken


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
    for known in arrivals.seen(u.c, HUB_SOURCE, notice.dedupe).values():
        return known.id
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
    draft = Draft(
        id=TriggerId(u.new_id("trigger")),
        payload=u.new_id("payload"),
        source=HUB_SOURCE,
        trigger=trigger,
        who=who,
        judgement=judgement,
        thread=thread,
        keys=tuple(dict.fromkeys(notice.dedupe)),
    )
    arrivals.insert(u, [(draft, way)])
    stored = draft.stored(u.now_ms)
    _deliver(u, stored, delivery, _AT_ONCE)
    record(
        u, "intake.accepted", About(trigger_id=stored.id, session_id=session), {"kind": notice.kind}
    )
    return stored.id


def read(c: sa.Connection, trigger: str) -> StoredTrigger | None:
    """Read a trigger as it was stored, without its raw bytes."""
    row = c.execute(_READ, {"trigger": trigger}).one_or_none()
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
        edits=TriggerId(row.edits_id) if row.edits_id else None,
    )


def unread(c: sa.Connection, session: str) -> list[StoredTrigger]:
    """Read what a session has not taken yet, oldest first."""
    return [_read(row) for row in c.execute(_UNREAD, {"session": session})]


def taken(c: sa.Connection, session: str, triggers: Sequence[StoredTrigger], entry: int) -> None:
    """Note that an entry of the transcript took these triggers: that is their acknowledgement."""
    found = [trigger.id for trigger in triggers]
    c.execute(_TAKEN, {"session": session, "found": found, "entry": entry})


def hand_on(u: Unit, session: str, stored: StoredTrigger) -> bool:
    """Give a stored trigger to a live session as well, which is woken; False when it had it."""
    if was_delivered(u.c, session, stored.id):
        return False
    urgent = bool(u.c.scalar(sa.select(TRIGGER.c.urgent).where(TRIGGER.c.id == stored.id)))
    to = routing.Delivery(session=SessionId(session), wake=True)
    _deliver(u, stored, to, replace(_AT_ONCE, urgent=urgent))
    return True


def fall_back(u: Unit, session: str, of: Sequence[ThreadId] | None = None) -> list[SessionId]:
    """Give an ended session's unread tail to the router (B6.4, B6.6); return who is woken.

    *of* are the threads that it follows no more, where it goes on. Context that woke nobody, what
    the hub told it alone, and what another live session was given stay away; the word of an
    operator to a session that ended does not.
    """
    router, outside = sessions.router(u.c), TRIGGER.c.source != HUB_SOURCE
    left = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.taken_n.is_(None))
    if of is not None:
        theirs = sa.select(TRIGGER.c.id).where(TRIGGER.c.thread_id.in_(of), outside)
        left = sa.and_(left, DELIVERY.c.trigger_id.in_(theirs))
    heard = sa.or_(outside, TRIGGER.c.kind.in_(FROM_OPERATORS))
    unseen = tail.ownerless(u.c, session, left, heard)
    u.c.execute(DELIVERY.delete().where(left))
    if router is None or not unseen:
        return []
    for one in unseen:
        row = {"session_id": router, "trigger_id": one, "wake": True, "strategy": "queue"}
        u.c.execute(_ADD_DELIVERY, row)
    sessions.wake(u, router)
    return [router]


def was_delivered(c: sa.Connection, session: str, trigger: str) -> bool:
    """Say whether a session was ever given this trigger, or handed it on to a worker."""
    return c.scalar(_GIVEN, {"session": session, "trigger": trigger}) is not None
