"""Oversight as it is shown: waits, effects with what holds them, and the hub's own figures."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.core.job import JobState
from upright.core.outbox import OutboxState
from upright.core.request import RequestState
from upright.core.wait import WaitState
from upright.core.work import TERMINAL, WorkState
from upright.store import views_work
from upright.store.plain import Plain, listed, one
from upright.store.tables import (
    EVENT,
    JOB,
    LEDGER,
    OUTBOX,
    REQUEST,
    SESSION,
    TRIGGER,
    WAIT,
    WORK,
)

LOOK_BACK: Final = 50_000
"""So many of the newest rows are counted at most: a look costs the same however old the hub is."""
MINUTE_MS: Final = 60_000


# ------------------------------------------------------------------ waits and effects
def waits(c: sa.Connection, *, open_only: bool, limit: int) -> list[Plain]:
    """List waits, the open ones first: what for, since when, until when, what then (B11.9)."""
    where = [WAIT.c.state == WaitState.OPEN.value] if open_only else []
    return views_work.waits_of(c, *where)[:limit]


def effects(c: sa.Connection, *, state: OutboxState | None, limit: int) -> list[Plain]:
    """List outward effects, the newest first; a held one with the ``request`` that it waits for."""
    chosen = sa.select(OUTBOX).order_by(OUTBOX.c.created_at_ms.desc(), OUTBOX.c.id.desc())
    if state is not None:
        chosen = chosen.where(OUTBOX.c.state == state.value)
    rows = listed(c, chosen.limit(limit))
    asked = _requests(c, [row["id"] for row in rows if row["state"] == OutboxState.HELD.value])
    return [{**row, "request": asked.get(row["id"])} for row in rows]


def effect(c: sa.Connection, outbox_id: str) -> Plain:
    """Return one effect whole, with its ``request`` and its ``events``.

    Raises:
        UnknownIdError: there is none.
    """
    found = one(c, OUTBOX, outbox_id)
    found["request"] = _requests(c, [outbox_id]).get(outbox_id)
    mine = sa.select(EVENT.c.at_ms, EVENT.c.stop, EVENT.c.data_json)
    found["events"] = listed(c, mine.where(EVENT.c.outbox_id == outbox_id).order_by(EVENT.c.seq))
    return found


def _requests(c: sa.Connection, effects: list[str]) -> dict[str, str]:
    asked = sa.select(REQUEST.c.outbox_id, REQUEST.c.id).where(
        REQUEST.c.outbox_id.in_(effects), REQUEST.c.state == RequestState.ASKED.value
    )
    return {row.outbox_id: row.id for row in c.execute(asked)}


# ------------------------------------------------------------------ figures
def stats(c: sa.Connection, now_ms: int, window_ms: int) -> Plain:
    """Count what happened a minute in the window, and say how old the oldest of each queue is.

    ``rates`` are counts a minute; ``ages_s`` are None where a queue is empty.
    """
    since = now_ms - window_ms
    return {
        "window_s": window_ms // 1000,
        "rates": _rates(c, since, window_ms / MINUTE_MS),
        "ages_s": {name: _age_s(at, now_ms) for name, at in oldest(c).items()},
        "leases": c.scalar(_LEASES),
        "work": {row.state: row.n for row in c.execute(_BY_STATE)},
        "sizes": {
            name: c.scalar(sa.select(sa.func.max(table.c.seq))) or 0
            for name, table in (("triggers", TRIGGER), ("events", EVENT), ("ledger", LEDGER))
        },
    }


_LEASES: Final = sa.select(sa.func.count()).where(
    SESSION.c.ready_at_ms.is_not(None), SESSION.c.lease_until_ms.is_not(None)
)
_BY_STATE: Final = (
    sa.select(WORK.c.state, sa.func.count().label("n"))
    .where(WORK.c.state.in_([state.value for state in WorkState if state not in TERMINAL]))
    .group_by(WORK.c.state)
    .order_by(WORK.c.state)
)
_OLDEST: Final = {
    "ready_session": sa.select(sa.func.min(SESSION.c.ready_at_ms)).where(
        SESSION.c.ready_at_ms.is_not(None), SESSION.c.lease_until_ms.is_(None)
    ),
    "pending_effect": sa.select(sa.func.min(OUTBOX.c.created_at_ms)).where(
        OUTBOX.c.state == OutboxState.PENDING.value
    ),
    "queued_job": sa.select(sa.func.min(JOB.c.created_at_ms)).where(
        JOB.c.state == JobState.QUEUED.value, JOB.c.settled.is_(False)
    ),
    "open_request": sa.select(sa.func.min(REQUEST.c.created_at_ms)).where(
        REQUEST.c.state == RequestState.ASKED.value
    ),
}


def oldest(c: sa.Connection) -> dict[str, int | None]:
    """Return since when the oldest of each queue waits, in epoch milliseconds."""
    return {name: c.scalar(query) for name, query in _OLDEST.items()}


def _age_s(at_ms: int | None, now_ms: int) -> float | None:
    return None if at_ms is None else max(now_ms - at_ms, 0) / 1000


def _rates(c: sa.Connection, since_ms: int, minutes: float) -> Plain:
    newest = c.scalar(sa.select(sa.func.max(TRIGGER.c.seq))) or 0
    taken = (
        sa.select(TRIGGER.c.disposition, sa.func.count().label("n"))
        .where(TRIGGER.c.seq > newest - LOOK_BACK, TRIGGER.c.received_at_ms >= since_ms)
        .group_by(TRIGGER.c.disposition)
        .order_by(TRIGGER.c.disposition)
    )
    last = c.scalar(sa.select(sa.func.max(EVENT.c.seq))) or 0
    happened = (
        sa.select(EVENT.c.stop, sa.func.count().label("n"))
        .where(
            EVENT.c.seq > last - LOOK_BACK,
            EVENT.c.at_ms >= since_ms,
            EVENT.c.stop.in_(["engine.claimed", "effect.committed", "effect.settled"]),
        )
        .group_by(EVENT.c.stop)
    )
    stops = {row.stop: row.n for row in c.execute(happened)}
    return {
        "triggers": {row.disposition: _rate(row.n, minutes) for row in c.execute(taken)},
        "turns": _rate(stops.get("engine.claimed", 0), minutes),
        "effects_committed": _rate(stops.get("effect.committed", 0), minutes),
        "effects_settled": _rate(stops.get("effect.settled", 0), minutes),
    }


def _rate(count: int, minutes: float) -> float:
    return round(count / minutes, 3)
