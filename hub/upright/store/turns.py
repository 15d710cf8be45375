"""Turns as rows: each that begins and ends; one that a hub's death cut short says so."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.store.sessions import Claim, check
from upright.store.tables import TURN
from upright.store.unit import Unit

_NOW: Final = sa.bindparam("now_ms", type_=sa.BigInteger())

# statements of the hot path are made once: building one costs more than running it
_ADD_TURN: Final = TURN.insert()
_CUT_TURN: Final = (
    TURN.update()
    .where(TURN.c.session_id == sa.bindparam("session"), TURN.c.ended_at_ms.is_(None))
    .values(ended_at_ms=_NOW, ending="cut_short")
)
_END_TURN: Final = (
    TURN.update()
    .where(TURN.c.id == sa.bindparam("turn"))
    .values(
        ended_at_ms=_NOW,
        ending=sa.bindparam("how"),
        steps=sa.bindparam("taken"),
    )
)


def begin(u: Unit, lease: Claim) -> str:
    """Note that a turn began, and that an earlier one never ended; return its id."""
    check(u.c, lease)
    u.c.execute(_CUT_TURN, {"session": lease.session, "now_ms": u.now_ms})
    turn = u.new_id("turn")
    begun = {
        "id": turn,
        "session_id": lease.session,
        "epoch": lease.epoch,
        "started_at_ms": u.now_ms,
        "ending": "",
        "steps": 0,
    }
    u.c.execute(_ADD_TURN, begun)
    return turn


def end(u: Unit, turn: str, *, ending: str, steps: int) -> None:
    """Note how a turn ended."""
    u.c.execute(_END_TURN, {"turn": turn, "now_ms": u.now_ms, "how": ending, "taken": steps})
