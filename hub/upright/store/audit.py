"""Audit: what must hold of the rows, whoever was killed; each finding is a sentence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.outbox import OutboxState
from upright.core.request import RequestState
from upright.core.transcript import decode
from upright.core.work import WorkState
from upright.store.relations import RelationKind
from upright.store.tables import (
    DEDUPE,
    DELIVERY,
    ENTRY,
    HANDBACK,
    OUTBOX,
    PAYLOAD,
    RELATION,
    REQUEST,
    SESSION,
    SUBSCRIPTION,
    TRIGGER,
    WAIT,
    WORK,
)
from upright.store.work import HUB_SOURCE

MOST: Final = 20  # of one kind; more would say nothing new


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A trigger as it is stored: ``native`` is the provider's id, ``occurred_ms`` its time."""

    seq: int
    id: str
    kind: str
    thread: str
    native: str
    occurred_ms: int | None
    disposition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An outward effect as it is stored."""

    id: str
    session: str
    key: str
    state: OutboxState
    receipt: str


def events(c: sa.Connection, source: str) -> list[Event]:
    """Return a source's triggers in the order in which they were stored."""
    rows = c.execute(sa.select(TRIGGER).where(TRIGGER.c.source == source).order_by(TRIGGER.c.seq))
    return [
        Event(
            seq=row.seq,
            id=row.id,
            kind=row.kind,
            thread=row.thread_id,
            native=dict(json.loads(row.body_json)["context"]["facts"]).get("native_id", ""),
            occurred_ms=row.occurred_at_ms,
            disposition=row.disposition,
        )
        for row in rows
    ]


def keys(c: sa.Connection, source: str) -> dict[str, str]:
    """Return each dedupe key of a source with the id of its trigger."""
    rows = c.execute(sa.select(DEDUPE.c.key, DEDUPE.c.trigger_id).where(DEDUPE.c.source == source))
    return {row.key: row.trigger_id for row in rows}


def effects(c: sa.Connection) -> list[Effect]:
    """Return every outward effect, the oldest first."""
    rows = c.execute(sa.select(OUTBOX).order_by(OUTBOX.c.created_at_ms, OUTBOX.c.id))
    return [
        Effect(
            id=row.id,
            session=row.session_id,
            key=row.idempotency_key,
            state=OutboxState(row.state),
            receipt=row.receipt_id,
        )
        for row in rows
    ]


def answered(c: sa.Connection) -> set[str]:
    """Return the ids of the requests that a person has answered."""
    mine = REQUEST.c.state == RequestState.ANSWERED.value
    return set(c.scalars(sa.select(REQUEST.c.id).where(mine)))


# ------------------------------------------------------------------ is it at rest?
_MOVES: Final = (WorkState.RUNNABLE, WorkState.COMPLETING, WorkState.WAITING_TIMER)
_UNDER_WAY: Final = (OutboxState.PENDING, OutboxState.SENDING)


def restless(c: sa.Connection) -> list[str]:
    """Say what will still move by itself, or by an answer that a person was asked for."""
    live = SESSION.c.ended_at_ms.is_(None)
    queued = sa.or_(
        SESSION.c.ready_at_ms.is_not(None),
        SESSION.c.lease_until_ms.is_not(None),
    )
    moving = WORK.c.state.in_([state.value for state in _MOVES])
    sending = OUTBOX.c.state.in_([state.value for state in _UNDER_WAY])
    asked = REQUEST.c.state == RequestState.ASKED.value
    return [
        *_each(c, sa.select(SESSION.c.id).where(live, queued), "{} is in the queue"),
        *_each(c, sa.select(WORK.c.id).where(moving), "{} has not come to rest"),
        *_each(c, sa.select(OUTBOX.c.id).where(sending), "{} is still to be sent"),
        *_each(c, sa.select(REQUEST.c.id).where(asked), "{} waits for an answer"),
    ]


# ------------------------------------------------------------------ is it whole?
def whole(c: sa.Connection) -> list[str]:
    """Check what must hold at every commit; nothing when all is well."""
    return [*_file(c), *_references(c), *_counts(c)]


def _file(c: sa.Connection) -> Iterator[str]:
    """Let SQLite check its own file: pages, indexes, constraints."""
    if c.dialect.name != "sqlite":
        return
    for (said,) in c.exec_driver_sql("PRAGMA quick_check"):
        if said != "ok":
            yield f"quick_check: {said}"
    for row in c.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"foreign_key_check: {row[0]}"


_BELONGS: Final = (
    (DEDUPE.c.trigger_id, TRIGGER.c.id, "a dedupe key"),
    (TRIGGER.c.payload_id, PAYLOAD.c.id, "a trigger's payload"),
    (DELIVERY.c.trigger_id, TRIGGER.c.id, "a delivery"),
    (DELIVERY.c.session_id, SESSION.c.id, "a delivery"),
    (SUBSCRIPTION.c.session_id, SESSION.c.id, "a subscription"),
    (ENTRY.c.session_id, SESSION.c.id, "an entry"),
    (WORK.c.session_id, SESSION.c.id, "an item"),
    (WORK.c.trigger_id, TRIGGER.c.id, "an item"),
    (SESSION.c.work_id, WORK.c.id, "a worker"),
    (WAIT.c.work_id, WORK.c.id, "a wait"),
    (REQUEST.c.work_id, WORK.c.id, "a request"),
    (REQUEST.c.outbox_id, OUTBOX.c.id, "an approval"),
    (OUTBOX.c.work_id, WORK.c.id, "an effect"),
)
"""Column by column: what it names must be there (the schema has no foreign keys)."""


def _references(c: sa.Connection) -> Iterator[str]:
    for column, named, what in _BELONGS:
        other = named.table.alias()
        there = sa.exists().where(other.c[named.name] == column)
        lost = sa.select(column).where(column.is_not(None), sa.not_(there))
        yield from _each(c, lost.distinct(), f"{what} names {{}}, which is not there")


def _counts(c: sa.Connection) -> Iterator[str]:
    """Check what may be there once, and what must have no gap."""
    yield from _each(
        c, sa.select(TRIGGER.c.id).where(TRIGGER.c.disposition == ""), "{} has no disposition"
    )
    twice = sa.func.count() > 1
    routers = sa.select(SESSION.c.kind).where(SESSION.c.kind == "router")
    yield from _each(c, routers.group_by(SESSION.c.kind).having(twice), "there are two of {}")
    works = sa.select(WORK.c.trigger_id).group_by(WORK.c.trigger_id).having(twice)
    yield from _each(c, works, "{} has two workers")
    gap = sa.func.count() != sa.func.max(ENTRY.c.n) + 1
    gaps = sa.select(ENTRY.c.session_id).group_by(ENTRY.c.session_id).having(gap)
    yield from _each(c, gaps, "the transcript of {} has a gap")


# ------------------------------------------------------------------ did everything reach somebody?
def untaken(c: sa.Connection) -> list[str]:
    """Name what was handed to an inbox with a wake, and what nobody has ever taken."""
    reaches = TRIGGER.c.disposition.in_(["started", "woke"])
    took = sa.exists().where(DELIVERY.c.trigger_id == TRIGGER.c.id, DELIVERY.c.taken_n.is_not(None))
    lost = sa.select(TRIGGER.c.id).where(reaches, sa.not_(took))
    return list(_each(c, lost, "{} was to reach somebody, and nobody took it"))


def disordered(c: sa.Connection) -> list[str]:
    """Name sessions that took a later trigger of a thread before an earlier one (B6.2).

    What was handed back comes a second time, later, and what the hub itself says is no news of the
    thread: both are left out.
    """
    back = sa.exists().where(HANDBACK.c.trigger_id == DELIVERY.c.trigger_id)
    rows = c.execute(
        sa.select(DELIVERY.c.session_id, TRIGGER.c.thread_id, TRIGGER.c.id, DELIVERY.c.taken_n)
        .join(TRIGGER, TRIGGER.c.id == DELIVERY.c.trigger_id)
        .where(DELIVERY.c.taken_n.is_not(None), sa.not_(back), TRIGGER.c.source != HUB_SOURCE)
        .order_by(DELIVERY.c.session_id, TRIGGER.c.thread_id, TRIGGER.c.seq)
    )
    found, latest = list[str](), dict[tuple[str, str], int]()
    for row in rows:
        place = (row.session_id, row.thread_id)
        if row.taken_n < latest.get(place, 0):
            found.append(f"{row.session_id} took {row.id} after a later one of its thread")
        latest[place] = max(row.taken_n, latest.get(place, 0))
    return found[:MOST]


def _each(c: sa.Connection, found: sa.Select[tuple[str]], sentence: str) -> Iterator[str]:
    for one in c.scalars(found.limit(MOST)):
        yield sentence.format(one)


def children(c: sa.Connection) -> Counter[str]:
    """Count the children of each item that has any."""
    mine = RELATION.c.kind == RelationKind.CHILD_OF.value
    return Counter(c.scalars(sa.select(RELATION.c.other_id).where(mine)))


def miscalled(c: sa.Connection) -> list[str]:
    """Name calls in transcripts that have no result, or more than one (B8.2); at rest only."""
    called, results = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in c.execute(sa.select(ENTRY.c.session_id, ENTRY.c.message_json)):
        message = decode(row.message_json)
        called.update((row.session_id, call.id) for call in message.calls)
        results.update([(row.session_id, message.call_id)] if message.call_id else [])
    return [
        f"{call} of {session} was called {called[session, call]} times, and has "
        f"{results[session, call]} results"
        for session, call in sorted(called | results)
        if not called[session, call] == results[session, call] == 1
    ][:MOST]


def is_sending(c: sa.Connection) -> bool:
    """Say whether an effect is being sent, or was when a hub died."""
    sending = sa.select(OUTBOX.c.id).where(OUTBOX.c.state == OutboxState.SENDING.value)
    return c.scalar(sending.limit(1)) is not None


def items(c: sa.Connection) -> int:
    """Count the work items."""
    return int(c.scalar(sa.select(sa.func.count()).select_from(WORK)) or 0)
