"""Digest: what came, in ids and counts: the router can see all, and is woken by few (B5.3).

Nothing here is a trigger's own text but, where it is asked for, its title.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from upright.core.mandate import Trust
from upright.store import codec
from upright.store.plain import Plain
from upright.store.tables import DELIVERY, SESSION, TRIGGER
from upright.store.work import HUB_SOURCE

MOST_COUNTED: Final = 1000
MOST_LINES: Final = 8
_LAST_TAKEN: Final = (
    sa.select(sa.func.max(TRIGGER.c.seq))
    .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
    .where(DELIVERY.c.session_id == sa.bindparam("session"), DELIVERY.c.taken_n.is_not(None))
)
_TO_IT: Final = (
    sa.exists()
    .where(DELIVERY.c.trigger_id == TRIGGER.c.id)
    .where(DELIVERY.c.session_id == sa.bindparam("session"))
)
_PAST: Final = (
    sa.select(TRIGGER.c.source, TRIGGER.c.kind, TRIGGER.c.disposition)
    .where(TRIGGER.c.seq > sa.bindparam("since"), TRIGGER.c.source != HUB_SOURCE, sa.not_(_TO_IT))
    .order_by(TRIGGER.c.seq.desc())
    .limit(MOST_COUNTED)
    .subquery()
)
_COUNT: Final = (
    sa.select(*_PAST.c, sa.func.count().label("times"))
    .group_by(*_PAST.c)
    .order_by(sa.func.count().desc(), *_PAST.c)
)


def went_past(c: sa.Connection, session: str) -> str:
    """Say in one line what came since a session last took something, and did not come to it.

    Counts by source, kind and disposition, the most frequent first; empty when nothing did, and
    for a session that has taken nothing yet.
    """
    since = c.scalar(_LAST_TAKEN, {"session": session})
    if since is None:
        return ""
    rows = c.execute(_COUNT, {"session": session, "since": since}).all()
    if not rows:
        return ""
    told = [f"{row.times} {row.source} {row.kind} {row.disposition}" for row in rows[:MOST_LINES]]
    more = sum(row.times for row in rows[MOST_LINES:])
    told += [f"{more} more"] if more else []
    return f"(past you since then: {'; '.join(told)}; `digest` lists them)"


def listed(c: sa.Connection, *, before: str, limit: int, titles: bool) -> tuple[list[Plain], Trust]:
    """List triggers, the newest first, from before one on; and how far what is shown is trusted.

    Each has ``id``, ``source``, ``kind``, ``actor``, ``thread``, ``disposition`` and whom it went
    to (``to``: work items, or ``router``); with *titles*, its title.
    """
    wanted = sa.select(TRIGGER).where(TRIGGER.c.source != HUB_SOURCE)
    if before:
        at = sa.select(TRIGGER.c.seq).where(TRIGGER.c.id == before).scalar_subquery()
        wanted = wanted.where(TRIGGER.c.seq < at)
    rows = c.execute(wanted.order_by(TRIGGER.c.seq.desc()).limit(limit)).all()
    to = _given(c, [row.id for row in rows])
    shown = [
        {
            "id": row.id,
            "source": row.source,
            "kind": row.kind,
            "actor": row.actor_kind,
            "thread": row.thread_id,
            "disposition": row.disposition,
            "to": to.get(row.id, []),
            **({"title": codec.load_trigger(row.body_json).content.title[:100]} if titles else {}),
        }
        for row in rows
    ]
    read = min((Trust(row.trust) for row in rows), default=Trust.OPERATOR)
    return shown, read if titles else Trust.OPERATOR


def _given(c: sa.Connection, triggers: Sequence[str]) -> dict[str, list[str]]:
    rows = c.execute(
        sa.select(DELIVERY.c.trigger_id, SESSION.c.kind, SESSION.c.work_id)
        .join(SESSION, SESSION.c.id == DELIVERY.c.session_id)
        .where(DELIVERY.c.trigger_id.in_(triggers))
        .order_by(DELIVERY.c.id)
    )
    given: dict[str, list[str]] = {}
    for row in rows:
        given.setdefault(row.trigger_id, []).append(row.work_id or row.kind)
    return given
