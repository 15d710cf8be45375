"""Inbox: how much waits to be read over all sessions, counted cheaply (B2.6)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.store.tables import DELIVERY, SESSION

# from the sessions that are to run: what waits for a person, or for nobody, is no backlog
_BACKLOG: Final = (
    sa.select(sa.func.count())
    .select_from(SESSION)
    .join(DELIVERY, DELIVERY.c.session_id == SESSION.c.id)
    .where(SESSION.c.ready_at_ms.is_not(None), DELIVERY.c.taken_n.is_(None), DELIVERY.c.wake)
)


def backlog(c: sa.Connection) -> int:
    """Count the unread triggers that wake sessions which are to run."""
    return int(c.scalar(_BACKLOG) or 0)
