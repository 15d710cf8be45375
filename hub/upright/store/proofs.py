"""Proofs: whether an id that is given as evidence belongs to the session that gives it (B11.11)."""

from __future__ import annotations

import sqlalchemy as sa

from upright.store.tables import DELIVERY, JOB, OUTBOX


def belongs(c: sa.Connection, session: str, identifier: str) -> bool:
    """Say whether a job, an effect or a trigger is one of this session.

    A trigger is from the moment that it was taken: read before, its text would taint nobody.
    """
    owned = {
        "jb": sa.select(JOB.c.id).where(JOB.c.id == identifier, JOB.c.session_id == session),
        "ob": sa.select(OUTBOX.c.id).where(
            OUTBOX.c.id == identifier, OUTBOX.c.session_id == session
        ),
        "tr": sa.select(DELIVERY.c.trigger_id).where(
            DELIVERY.c.trigger_id == identifier,
            DELIVERY.c.session_id == session,
            DELIVERY.c.taken_n.is_not(None),
        ),
    }
    found = owned.get(identifier[:2])
    return found is not None and c.scalar(found) is not None
