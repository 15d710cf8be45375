"""Waits as rows: register, match, cancel, expire; always inside the unit that moves the item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core import wait as waits
from upright.core.ids import WaitId, WorkId
from upright.core.wait import Match, OnDeadline, Outcome, Wait, WaitKind, WaitState, Wake
from upright.store.errors import UnknownIdError
from upright.store.tables import WAIT, WORK
from upright.store.unit import Unit

# statements of the hot path are made once: building one costs more than running it
_OF_WORK: Final = (
    sa.select(WAIT).where(WAIT.c.work_id == sa.bindparam("work")).order_by(WAIT.c.generation)
)
IS_OPEN: Final = WAIT.c.state == sa.literal_column("'open'")
"""Written out, not bound: only so does SQLite take the index of the open ones."""
_OPEN: Final = _OF_WORK.where(IS_OPEN)
_ADD: Final = WAIT.insert()
_MOVE: Final = (
    WAIT.update().where(WAIT.c.id == sa.bindparam("wait")).values(state=sa.bindparam("to"))
)
EARLIEST: Final = sa.select(sa.func.min(WAIT.c.deadline_ms).label("at_ms")).where(IS_OPEN)

_GENERATION: Final = sa.select(WORK.c.generation).where(WORK.c.id == sa.bindparam("work"))
_NEXT_GENERATION: Final = (
    WORK.update().where(WORK.c.id == sa.bindparam("work")).values(generation=sa.bindparam("to"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to wait for: ``deadline_s`` None takes the kind's default."""

    kind: WaitKind
    ref: str
    why: str
    look_first: str = ""
    deadline_s: int | None = None
    on_deadline: OnDeadline | None = None


def register(u: Unit, work: str, asked: Asked) -> Wait:
    """Register a wait; an open one of the same source is replaced, and a deadline is always set.

    Raises:
        InvalidError: the deadline is not in the future.
    """
    seconds = u.terms.wait_s(asked.kind, asked.deadline_s)
    deadline_ms, then = waits.deadline(asked.kind, u.now_ms, seconds)
    cancel(u.c, work, kind=asked.kind, ref=asked.ref)
    generation = 1 + int(u.c.scalar(_GENERATION, {"work": work}) or 0)
    u.c.execute(_NEXT_GENERATION, {"work": work, "to": generation})
    made = Wait(
        id=WaitId(u.new_id("wait")),
        work=WorkId(work),
        generation=generation,
        kind=asked.kind,
        ref=asked.ref,
        why=asked.why,
        look_first=asked.look_first,
        created_at_ms=u.now_ms,
        deadline_ms=deadline_ms,
        on_deadline=asked.on_deadline or then,
    )
    row = {
        "id": made.id,
        "work_id": work,
        "generation": generation,
        "kind": made.kind.value,
        "ref": made.ref,
        "why": made.why,
        "look_first": made.look_first,
        "created_at_ms": made.created_at_ms,
        "deadline_ms": made.deadline_ms,
        "on_deadline": made.on_deadline.value,
        "state": made.state.value,
    }
    u.c.execute(_ADD, row)
    return made


def of_work(c: sa.Connection, work: str) -> list[Wait]:
    """Read all waits of an item, oldest first."""
    return [_read(row) for row in c.execute(_OF_WORK, {"work": work})]


def read(c: sa.Connection, wait: str) -> Wait:
    """Read one wait; UnknownIdError when there is none."""
    row = c.execute(sa.select(WAIT).where(WAIT.c.id == wait)).one_or_none()
    if row is None:
        raise UnknownIdError(wait)
    return _read(row)


def open_of(c: sa.Connection, work: str) -> list[Wait]:
    """Read the open waits of an item, the newest last."""
    return [_read(row) for row in c.execute(_OPEN, {"work": work})]


def settle(c: sa.Connection, work: str, wake: Wake) -> Match:
    """Match a wake with an item's waits; with MATCH the wait is ended here and now."""
    found = waits.match(of_work(c, work), wake)
    if found.outcome is Outcome.MATCH and found.wait is not None:
        store(c, waits.step(found.wait, waits.Matched()))
    return found


def cancel(
    c: sa.Connection, work: str, *, kind: WaitKind | None = None, ref: str | None = None
) -> None:
    """Cancel the open waits of an item, all or those of one source."""
    for wait in open_of(c, work):
        if kind in {None, wait.kind} and ref in {None, wait.ref}:
            store(c, waits.step(wait, waits.Cancelled()))


def due(c: sa.Connection, now_ms: int, limit: int) -> list[Wait]:
    """Read open waits whose deadline has passed, the oldest deadline first."""
    late = sa.select(WAIT).where(IS_OPEN, WAIT.c.deadline_ms <= now_ms)
    return [_read(row) for row in c.execute(late.order_by(WAIT.c.deadline_ms).limit(limit))]


def expire(c: sa.Connection, wait: Wait) -> None:
    """End a wait because its deadline passed."""
    store(c, waits.step(wait, waits.Expired()))


def works_waiting(c: sa.Connection, kind: WaitKind, ref: str) -> list[WorkId]:
    """Find the items with an open wait of this source."""
    found = sa.select(WAIT.c.work_id).where(IS_OPEN, WAIT.c.kind == kind.value, WAIT.c.ref == ref)
    return [WorkId(work) for work in c.scalars(found.distinct())]


def store(c: sa.Connection, wait: Wait) -> None:
    """Store the state that a wait has moved to."""
    c.execute(_MOVE, {"wait": wait.id, "to": wait.state.value})


def _read(row: sa.Row[tuple[object, ...]]) -> Wait:
    return Wait(
        id=WaitId(row.id),
        work=WorkId(row.work_id),
        generation=row.generation,
        kind=WaitKind(row.kind),
        ref=row.ref,
        why=row.why,
        look_first=row.look_first,
        created_at_ms=row.created_at_ms,
        deadline_ms=row.deadline_ms,
        on_deadline=OnDeadline(row.on_deadline),
        state=WaitState(row.state),
    )
