"""Succession: an item follows the last one of its thread that is over, and may read it (B6.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from upright.core.ids import SessionId, WorkId
from upright.core.mandate import Trust
from upright.core.work import TERMINAL
from upright.store import privacy
from upright.store.events import About, record
from upright.store.tables import RELATION, SESSION, WORK
from upright.store.unit import Unit

FOLLOWS: Final = "follows"
"""The kind of the relation, as ``store.relations`` reads it."""
ENDED: Final = tuple(sorted(state.value for state in TERMINAL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An item that is over, with its session and how far that session was tainted."""

    work: WorkId
    session: SessionId
    state: str
    taint: Trust


_EARLIER: Final = sa.select(WORK.c.id, WORK.c.session_id, WORK.c.state, SESSION.c.taint).join(
    SESSION, SESSION.c.id == WORK.c.session_id
)

_FOLLOWED: Final = (
    _EARLIER.join(RELATION, RELATION.c.other_id == WORK.c.id)
    .where(RELATION.c.work_id == sa.bindparam("work"), RELATION.c.kind == FOLLOWS)
    .limit(1)
)


def last_over(c: sa.Connection, threads: Sequence[str]) -> Earlier | None:
    """Return the last item of these threads that is over: what a new one follows."""
    ended = _EARLIER.where(WORK.c.thread_id.in_(threads), WORK.c.state.in_(ENDED))
    newest = ended.order_by(WORK.c.changed_at_ms.desc(), WORK.c.id.desc()).limit(1)
    row = c.execute(newest).one_or_none()
    return None if row is None else _earlier(row)


def begin(u: Unit, work: str, before: Earlier) -> None:
    """Let a new item follow an earlier one, and be seen by whom that is seen by."""
    u.c.execute(RELATION.insert().values(work_id=work, kind=FOLLOWS, other_id=before.work))
    privacy.inherit(u, work, before.work)  # its worker may read that one's session
    record(u, "work.related", About(work_id=work), {"kind": FOLLOWS, "other": before.work})


def follows(c: sa.Connection, work: str) -> Earlier | None:
    """Return the item that this one follows."""
    row = c.execute(_FOLLOWED, {"work": work}).first()
    return None if row is None else _earlier(row)


def _earlier(row: sa.Row[Any, Any, Any, Any]) -> Earlier:
    return Earlier(
        work=WorkId(row.id),
        session=SessionId(row.session_id),
        state=str(row.state),
        taint=Trust(row.taint),
    )
