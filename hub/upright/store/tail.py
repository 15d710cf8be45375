"""Tail: what would have no reader left when a session leaves a thread, or ends (B6.4)."""

from __future__ import annotations

import sqlalchemy as sa

from upright.store.tables import DELIVERY, SESSION, TRIGGER
from upright.store.unit import Connection


def ownerless(
    c: Connection, session: str, left: sa.ColumnElement[bool], counts: sa.ColumnElement[bool]
) -> list[str]:
    """Return the triggers of the deliveries *left*, oldest first, that nobody else will see.

    *counts* says which triggers matter; context that woke nobody never does.
    """
    other = DELIVERY.alias()
    seen_elsewhere = sa.exists().where(
        other.c.trigger_id == TRIGGER.c.id,
        other.c.session_id != session,
        other.c.session_id == SESSION.c.id,
        SESSION.c.ended_at_ms.is_(None),
    )
    found = (
        sa.select(TRIGGER.c.id)
        .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
        .where(left, DELIVERY.c.wake, counts, sa.not_(seen_elsewhere))
        .order_by(TRIGGER.c.seq)
    )
    return list(c.scalars(found))
