"""Retention as rows: each function prunes one small piece of one kind, in one unit of work.

What was pruned keeps its row, and with it its id; only its bytes go. Whatever unfinished work may
still look at stays: its transcript, its jobs' output, what it has not read yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from upright.core.budget import Scope
from upright.core.retention import pruned_on
from upright.core.work import TERMINAL
from upright.store import codec, views_events
from upright.store.tables import (
    DEDUPE,
    DELIVERY,
    EFFECT_EDIT,
    ENTRY,
    EVENT,
    JOB,
    LEDGER,
    OUTBOX,
    OUTPUT,
    PAYLOAD,
    RELATION,
    SESSION,
    SNAPSHOT,
    SPENT,
    TAINT,
    TRIGGER,
    WORK,
)
from upright.store.tables_people import AUDIT
from upright.store.unit import Unit

ROWS: Final = 500
PIECES: Final = 100  # of output: each may have 64 KiB
_JOBS: Final = 100
_ENDED: Final = tuple(state.value for state in TERMINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one unit did: how many rows, how many bytes of output, and where to go on.

    ``place`` is given to the next call; None when all is done. ``loose`` are digests of spilled
    payloads whose row is pruned: their files go when no other row names them.
    """

    rows: int = 0
    size: int = 0
    place: tuple[int, str] | None = None
    loose: tuple[str, ...] = ()


START: Final = (-1, "")


# ------------------------------------------------------------------ payloads
def payloads(u: Unit, before_ms: int, place: tuple[int, str]) -> Piece:
    """Prune raw bytes that are older than *before_ms*, oldest first, from *place* on.

    What an unfinished worker was given, and what anybody has not read yet, is passed over.
    """
    at, last = place
    age = PAYLOAD.c.created_at_ms
    found = u.c.execute(
        sa.select(PAYLOAD.c.id, age, PAYLOAD.c.spilled)
        .where(PAYLOAD.c.pruned_at_ms.is_(None), age < before_ms)
        .where(age >= at, sa.or_(age > at, PAYLOAD.c.id > last))
        .order_by(age, PAYLOAD.c.id)
        .limit(ROWS)
    ).all()
    needed = _needed(u.c, [row.id for row in found])
    old = [row for row in found if row.id not in needed]
    u.c.execute(
        PAYLOAD.update()
        .where(PAYLOAD.c.id.in_([row.id for row in old]))
        .values(body=b"", spilled="", pruned_at_ms=u.now_ms)
    )
    return Piece(
        rows=len(old),
        place=(found[-1].created_at_ms, found[-1].id) if len(found) == ROWS else None,
        loose=tuple({row.spilled for row in old if row.spilled}),
    )


def _needed(c: sa.Connection, ids: Sequence[str]) -> set[str]:
    """Return those payloads that somebody who has not ended may still look at."""
    live = sa.and_(SESSION.c.id == DELIVERY.c.session_id, SESSION.c.ended_at_ms.is_(None))
    unread_or_a_workers = sa.or_(DELIVERY.c.taken_n.is_(None), SESSION.c.work_id.is_not(None))
    wanted = (
        sa.select(TRIGGER.c.payload_id)
        .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
        .join(SESSION, live)
        .where(TRIGGER.c.payload_id.in_(ids), unread_or_a_workers)
    )
    return set(c.scalars(wanted))


def payload_pruned(c: sa.Connection, payload: str) -> str:
    """Say when a payload was pruned; empty while it is kept."""
    at_ms = c.scalar(sa.select(PAYLOAD.c.pruned_at_ms).where(PAYLOAD.c.id == payload))
    return pruned_on(at_ms)


def spilled(c: sa.Connection) -> set[str]:
    """Return all digests that rows name."""
    return set(c.scalars(sa.select(PAYLOAD.c.spilled).where(sa.text("spilled <> ''"))))


def spilled_among(c: sa.Connection, digests: Sequence[str]) -> set[str]:
    """Return those digests that a row still names."""
    named = sa.text("spilled <> ''")  # written out: only so is its index taken
    found = sa.select(PAYLOAD.c.spilled).where(named, PAYLOAD.c.spilled.in_(digests))
    return set(c.scalars(found))


# ------------------------------------------------------------------ transcripts
def transcripts(u: Unit, before_ms: int) -> Piece:
    """Prune some entries of the session that ended first, before *before_ms*.

    A session that an unfinished item follows up on is passed over.
    """
    successor = WORK.alias()
    followed = (
        sa.exists()
        .where(RELATION.c.other_id == SESSION.c.work_id)
        .where(RELATION.c.work_id == successor.c.id, successor.c.state.not_in(_ENDED))
    )
    ended = SESSION.c.ended_at_ms
    old = sa.select(SESSION.c.id).where(SESSION.c.pruned_at_ms.is_(None), ended < before_ms)
    old = old.where(_over(SESSION.c.work_id), sa.not_(followed)).order_by(ended).limit(1)
    session = u.c.scalar(old)
    if session is None:
        return Piece()
    first = sa.select(ENTRY.c.n).where(ENTRY.c.session_id == session).order_by(ENTRY.c.n)
    numbers = list(u.c.scalars(first.limit(ROWS)))
    if numbers:
        mine = sa.and_(ENTRY.c.session_id == session, ENTRY.c.n <= numbers[-1])
        u.c.execute(ENTRY.delete().where(mine))
    if len(numbers) < ROWS:
        u.c.execute(TAINT.delete().where(TAINT.c.session_id == session))
        own = SESSION.update().where(SESSION.c.id == session)
        u.c.execute(own.values(pruned_at_ms=u.now_ms))
    return Piece(rows=len(numbers), place=START)


def _over(work_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Say in SQL that no unfinished item has this id."""
    return sa.not_(sa.exists().where(WORK.c.id == work_id, WORK.c.state.not_in(_ENDED)))


# ------------------------------------------------------------------ output
def output(u: Unit, before_ms: int | None) -> Piece:
    """Prune some output of the jobs that ended first, before *before_ms* or at any time.

    Jobs of unfinished items are passed over. ``size`` says how many bytes went.
    """
    old = sa.select(JOB.c.id).where(
        JOB.c.pruned_at_ms.is_(None), JOB.c.ended_at_ms.is_not(None), _over(JOB.c.work_id)
    )
    if before_ms is not None:
        old = old.where(JOB.c.ended_at_ms < before_ms)
    # one job at a time while there is a cap to come under, so that no more goes than must
    some = old.order_by(JOB.c.ended_at_ms, JOB.c.id).limit(1 if before_ms is None else _JOBS)
    jobs = list(u.c.scalars(some))
    if not jobs:
        return Piece()
    size = sa.func.length(OUTPUT.c.data).label("size")
    kept = sa.select(OUTPUT.c.job_id, OUTPUT.c.stream, OUTPUT.c.offset, size)
    pieces = u.c.execute(kept.where(OUTPUT.c.job_id.in_(jobs)).limit(PIECES)).all()
    if pieces:
        u.c.execute(_DROP, [{"job": p.job_id, "name": p.stream, "at": p.offset} for p in pieces])
    if len(pieces) < PIECES:
        done = JOB.update().where(JOB.c.id.in_(jobs))
        u.c.execute(done.values(pruned_at_ms=u.now_ms))
    return Piece(rows=len(pieces), size=sum(p.size for p in pieces), place=START)


_DROP: Final = OUTPUT.delete().where(
    OUTPUT.c.job_id == sa.bindparam("job"),
    OUTPUT.c.stream == sa.bindparam("name"),
    OUTPUT.c.offset == sa.bindparam("at"),
)


def output_size(c: sa.Connection) -> int:
    """Return how many bytes of output are stored."""
    return int(c.scalar(sa.select(sa.func.sum(sa.func.length(OUTPUT.c.data)))) or 0)


# ------------------------------------------------------------------ what happened, what it cost
def events(u: Unit, before_ms: int) -> Piece:
    """Delete some of the oldest events; the newest one stays: its number is never given again."""
    piece = _oldest(u, EVENT, before_ms)
    if piece.rows:
        oldest = u.c.scalar(sa.select(sa.func.min(EVENT.c.seq)))
        views_events.note_pruned(u, (oldest or 1) - 1)
    return piece


def ledger(u: Unit, before_ms: int) -> Piece:
    """Delete some of the oldest rows of the ledger, and the counts of as long ago.

    What an unfinished item has used stays: its budget goes by it.
    """
    live = sa.select(WORK.c.id).where(WORK.c.id == SPENT.c.name, WORK.c.state.not_in(_ENDED))
    of_live = sa.and_(SPENT.c.scope == Scope.ITEM.value, sa.exists(live))
    u.c.execute(SPENT.delete().where(SPENT.c.changed_ms < before_ms, sa.not_(of_live)))
    return _oldest(u, LEDGER, before_ms)


def audit(u: Unit, before_ms: int) -> Piece:
    """Delete some of the oldest rows of the audit trail."""
    return _oldest(u, AUDIT, before_ms)


def _oldest(u: Unit, table: sa.Table, before_ms: int) -> Piece:
    first = sa.select(table.c.seq, table.c.at_ms).order_by(table.c.seq).limit(ROWS + 1)
    rows = u.c.execute(first).all()
    numbers = [row.seq for row in rows[:-1] if row.at_ms < before_ms]
    u.c.execute(table.delete().where(table.c.seq.in_(numbers)))
    return Piece(rows=len(numbers), place=START if len(numbers) == ROWS else None)


def snapshots(u: Unit, before_ms: int) -> Piece:
    """Delete some snapshots that were taken before *before_ms*: reading on begins anew."""
    keys = (SNAPSHOT.c.reader, SNAPSHOT.c.object_id, SNAPSHOT.c.part)
    old = sa.select(*keys).where(SNAPSHOT.c.at_ms < before_ms).order_by(SNAPSHOT.c.at_ms)
    found = [tuple(row) for row in u.c.execute(old.limit(ROWS))]
    u.c.execute(SNAPSHOT.delete().where(sa.tuple_(*keys).in_(found)))
    return Piece(rows=len(found), place=START if len(found) == ROWS else None)


def receipts(u: Unit, before_ms: int, said: str) -> Piece:
    """Prune some texts of effects that were settled before *before_ms*; receipts stay.

    *said* is put behind the reason: it tells whoever looks for the text.
    """
    old = sa.select(OUTBOX.c.id).where(
        sa.text("text <> ''"), OUTBOX.c.settled_at_ms < before_ms
    )  # written out: only so is its index taken
    found = list(u.c.scalars(old.order_by(OUTBOX.c.settled_at_ms).limit(ROWS)))
    reason = sa.case((OUTBOX.c.reason == "", said), else_=OUTBOX.c.reason + "; " + said)
    u.c.execute(OUTBOX.update().where(OUTBOX.c.id.in_(found)).values(text="", reason=reason))
    edited = EFFECT_EDIT.update().where(EFFECT_EDIT.c.outbox_id.in_(found))
    u.c.execute(edited.values(was_text=""))
    return Piece(rows=len(found), place=START if len(found) == ROWS else None)


def dedupe(u: Unit, before_ms: int, place: tuple[int, str]) -> Piece:
    """Forget the keys of some triggers that came before *before_ms*: they may come again."""
    seq, _ = place
    old = sa.select(TRIGGER.c.seq, TRIGGER.c.id, TRIGGER.c.source, TRIGGER.c.body_json)
    old = old.where(TRIGGER.c.seq > seq, TRIGGER.c.received_at_ms < before_ms)
    rows = u.c.execute(old.order_by(TRIGGER.c.seq).limit(ROWS)).all()
    keys = [
        {"from": row.source, "named": key, "of": row.id}
        for row in rows
        for key in codec.load_trigger(row.body_json).dedupe
    ]
    if keys:
        u.c.execute(_FORGET, keys)
    return Piece(rows=len(keys), place=(rows[-1].seq, "") if rows else None)


_FORGET: Final = DEDUPE.delete().where(
    DEDUPE.c.source == sa.bindparam("from"),
    DEDUPE.c.key == sa.bindparam("named"),
    DEDUPE.c.trigger_id == sa.bindparam("of"),
)


# ------------------------------------------------------------------ the file
PAGES: Final = 500
_SPARE_SHARE: Final = 8  # so much of the file may be free: it is filled again soon


def give_back(u: Unit) -> Piece:
    """Give some free pages of SQLite's file back to the disk, when many are free.

    PostgreSQL does this by itself.
    """
    if u.c.dialect.name != "sqlite":
        return Piece()
    free = int(u.c.exec_driver_sql("PRAGMA freelist_count").scalar() or 0)
    pages = int(u.c.exec_driver_sql("PRAGMA page_count").scalar() or 0)
    spare = min(free - pages // _SPARE_SHARE, PAGES)
    for _ in range(spare):  # Python's sqlite3 runs the statement for one page only
        u.c.exec_driver_sql("PRAGMA incremental_vacuum(1)")
    return Piece(rows=max(spare, 0), place=START if spare == PAGES else None)
