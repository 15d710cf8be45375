"""Events as they are read: in order, from a number on, without a gap that nobody is told of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.store.columns import OldestXact
from upright.store.plain import Plain, columns, plain
from upright.store.tables import EVENT, META
from upright.store.unit import Unit

_PRUNED: Final = "events_pruned_to"
_SETTLED: Final = EVENT.c.xact < OldestXact()  # no lower number is still to come
_EVENT: Final = columns(EVENT, without=["xact"])
_LAST: Final = sa.select(sa.func.max(EVENT.c.seq)).where(_SETTLED)
_NEWER: Final = (
    sa.select(*_EVENT)
    .where(EVENT.c.seq > sa.bindparam("seq"), _SETTLED)
    .order_by(EVENT.c.seq)
    .limit(sa.bindparam("most"))
)
_PRUNED_TO: Final = sa.select(META.c.value).where(META.c.key == _PRUNED)


@dataclass(frozen=True, slots=True)
class Gone:
    """Some of what was asked for is there no more; what there is starts at ``start_at``."""

    start_at: int


def events_since(c: sa.Connection, seq: int, *, limit: int) -> list[Plain]:
    """List events after *seq*, in order: the stream that a client resumes by sequence.

    On PostgreSQL an event shows once every transaction that is older than its own has ended.
    """
    rows = c.execute(_NEWER, {"seq": seq, "most": limit}).mappings()
    return [plain(row) for row in rows]


def next_of(c: sa.Connection, seq: int, *, limit: int) -> list[Plain] | Gone:
    """List events after *seq* as :func:`events_since` does, unless some of them were pruned."""
    pruned = pruned_to(c)
    return Gone(pruned) if seq < pruned else events_since(c, seq, limit=limit)


def gone(c: sa.Connection, seq: int) -> int | None:
    """Say where to start anew when events after *seq* are gone; None while all of them are there.

    A number above the newest is one of another database: of one that was restored since.
    """
    pruned, newest = pruned_to(c), last_seq(c)
    if seq < pruned:
        return pruned
    return newest if seq > newest else None


def last_seq(c: sa.Connection) -> int:
    """Return the number of the newest event that :func:`events_since` shows; 0 without any."""
    return c.scalar(_LAST) or 0


def pruned_to(c: sa.Connection) -> int:
    """Return the highest number that was pruned; 0 when nothing was."""
    return int(c.scalar(_PRUNED_TO) or 0)


def note_pruned(u: Unit, seq: int) -> None:
    """Note that no event up to *seq* is left, in the transaction that prunes."""
    u.c.execute(META.delete().where(META.c.key == _PRUNED))
    u.c.execute(META.insert().values(key=_PRUNED, value=str(seq)))
