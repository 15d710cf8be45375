"""Snapshots: the text that a reader began with, so that reading on shows no other (B7.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from upright.core.mandate import Trust
from upright.core.recall import PAGE_CHARS, Shown
from upright.store.errors import NotNowError
from upright.store.tables import SNAPSHOT

_MINE: Final = sa.and_(
    SNAPSHOT.c.reader == sa.bindparam("by"),
    SNAPSHOT.c.object_id == sa.bindparam("of"),
    SNAPSHOT.c.part == sa.bindparam("which"),
)
_FIND: Final = sa.select(SNAPSHOT).where(_MINE)
_DROP: Final = SNAPSHOT.delete().where(_MINE)


def begun(c: sa.Connection, now_ms: int, reader: str, shown: Shown, *, offset: int) -> Shown:
    """Return what a reader sees at *offset*: fresh at 0, later what it began with.

    What never changes needs no snapshot, nor does what is read in one page.

    Raises:
        NotNowError: what it began with is not kept any more.
    """
    if shown.fixed:
        return shown
    if offset == 0:
        if len(shown.text) > PAGE_CHARS:
            keep(c, now_ms, reader, shown)
        return shown
    kept = found(c, reader, shown)
    if kept is None:
        raise NotNowError(shown.id, "what you read of it is not kept any more: begin at offset 0")
    return kept


def keep(c: sa.Connection, now_ms: int, reader: str, shown: Shown) -> None:
    """Keep the text of what is shown, in place of what this reader had begun to read before."""
    c.execute(_DROP, {"by": reader, "of": shown.id, "which": shown.part})
    row = {
        "reader": reader,
        "object_id": shown.id,
        "part": shown.part,
        "text": shown.text,
        "trust": int(shown.trust),
        "private": shown.private,
        "at_ms": now_ms,
    }
    c.execute(SNAPSHOT.insert(), row)


def found(c: sa.Connection, reader: str, shown: Shown) -> Shown | None:
    """Return what is shown with the text that this reader began with; None: it began with none.

    The trust is the least trusted of then and now: what was written meanwhile is not shown.
    """
    mine = {"by": reader, "of": shown.id, "which": shown.part}
    row = c.execute(_FIND, mine).one_or_none()
    if row is None:
        return None
    private = row.private or shown.private
    return replace(shown, text=row.text, trust=Trust(row.trust), private=private)
