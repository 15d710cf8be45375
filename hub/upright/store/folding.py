"""Folding as rows: a session is woken at once, or at the end of its quiet window (B2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core import fold as folding
from upright.store.tables import SESSION
from upright.store.unit import Unit

_ONE: Final = SESSION.c.id == sa.bindparam("session")

# statements of the hot path are made once: building one costs more than running it
_FOLDS: Final = sa.select(
    SESSION.c.ready_at_ms, SESSION.c.failures, SESSION.c.fold_opened_ms, SESSION.c.fold_due_ms
).where(_ONE, SESSION.c.ended_at_ms.is_(None))
_FOLD: Final = (
    SESSION.update()
    .where(_ONE)
    .values(
        ready_at_ms=sa.bindparam("ready_ms"),
        fold_opened_ms=sa.bindparam("opened_ms"),
        fold_due_ms=sa.bindparam("due_ms"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """How a session was woken: ``folded``, when what came waits; ``sooner``, when it is ready."""

    folded: bool
    sooner: bool


def fold(u: Unit, session: str, quiet: folding.Quiet, *, pressing: bool) -> Woken:
    """Wake a live session by the rule of B2.5: now, or at the end of its quiet window.

    ``sooner`` says that it is ready earlier than anybody knew: the engine wants a hint.
    """
    row = u.c.execute(_FOLDS, {"session": session}).one_or_none()
    if row is None:
        return Woken(folded=False, sooner=False)
    opened_ms, due_ms = row.fold_opened_ms, row.fold_due_ms
    window = None if due_ms is None else folding.Window(opened_ms=opened_ms, due_ms=due_ms)
    standing = folding.Standing(window=window, ready_ms=row.ready_at_ms, failing=row.failures > 0)
    done = folding.fold(standing, u.now_ms, quiet, pressing=pressing)
    if (done.window, done.ready_ms) != (window, row.ready_at_ms):
        after = done.window
        values = {
            "session": session,
            "ready_ms": done.ready_ms,
            "opened_ms": after.opened_ms if after else None,
            "due_ms": after.due_ms if after else None,
        }
        u.c.execute(_FOLD, values)
    sooner = row.ready_at_ms is None or done.ready_ms < row.ready_at_ms
    return Woken(folded=done.folded, sooner=sooner)
