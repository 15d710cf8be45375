"""Audit trail: who did what, and who was refused; rows are added, never changed (S5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.store.acting import Deed
from upright.store.plain import Plain, listed
from upright.store.tables_people import AUDIT
from upright.store.unit import Unit

DONE: Final = "done"
MAX_TEXT: Final = 200
_ADD: Final = AUDIT.insert()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows are asked for; what is empty or None asks for nothing in particular."""

    who: str = ""
    action: str = ""  # or the beginning of it
    since_ms: int | None = None
    before_seq: int | None = None
    limit: int = 50


def add(u: Unit, deed: Deed, outcome: str = DONE) -> None:
    """Write a deed down; *outcome* is ``done``, or the code of what refused it."""
    u.c.execute(
        _ADD,
        {
            "at_ms": u.now_ms,
            "who": deed.who[:MAX_TEXT],
            "account_id": deed.account,
            "via": deed.via,
            "action": deed.action[:MAX_TEXT],
            "object": deed.object[:MAX_TEXT],
            "outcome": outcome[:MAX_TEXT],
            "origin": deed.origin[:MAX_TEXT],
        },
    )


def rows(c: sa.Connection, wanted: Wanted) -> list[Plain]:
    """List what was done, the newest first."""
    query = sa.select(AUDIT).order_by(AUDIT.c.seq.desc()).limit(wanted.limit)
    if wanted.who:
        query = query.where(AUDIT.c.who == wanted.who)
    if wanted.action:
        query = query.where(AUDIT.c.action.startswith(wanted.action, autoescape=True))
    if wanted.since_ms is not None:
        query = query.where(AUDIT.c.at_ms >= wanted.since_ms)
    if wanted.before_seq is not None:
        query = query.where(AUDIT.c.seq < wanted.before_seq)
    return listed(c, query)
