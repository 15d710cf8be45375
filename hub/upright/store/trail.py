"""Trail: what an observer asks of the rows: which stops a unit left, what is stored how often."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from upright.store.tables import DEDUPE, EVENT, JOB, SESSION, TRIGGER


@dataclass(frozen=True, slots=True)
class Trace:
    """One event: the stop's name, and what else it says."""

    stop: str
    data: Mapping[str, Any]


def last(c: sa.Connection) -> int:
    """Return the number of the newest event; 0 without one."""
    return int(c.scalar(sa.select(sa.func.max(EVENT.c.seq))) or 0)


def since(c: sa.Connection, seq: int) -> list[Trace]:
    """Return the events behind *seq*, in their order."""
    newer = sa.select(EVENT.c.stop, EVENT.c.data_json).where(EVENT.c.seq > seq)
    rows = c.execute(newer.order_by(EVENT.c.seq))
    return [Trace(stop=row.stop, data=json.loads(row.data_json)) for row in rows]


def is_leased(c: sa.Connection) -> bool:
    """Say whether any session is under a lease: a turn is under way, or was when a hub died."""
    leased = sa.select(SESSION.c.id).where(SESSION.c.lease_until_ms.is_not(None))
    return c.scalar(leased.limit(1)) is not None


def taken_in(c: sa.Connection, source: str) -> dict[str, str]:
    """Return each dedupe key of a source with the disposition of its trigger."""
    rows = c.execute(
        sa.select(DEDUPE.c.key, TRIGGER.c.disposition)
        .join(TRIGGER, TRIGGER.c.id == DEDUPE.c.trigger_id)
        .where(DEDUPE.c.source == source)
    )
    return {row.key: row.disposition for row in rows}


def natives(c: sa.Connection, source: str, kind: str) -> Counter[str]:
    """Count a source's triggers of one kind by the provider's own id of what happened."""
    rows = c.scalars(
        sa.select(TRIGGER.c.body_json).where(TRIGGER.c.source == source, TRIGGER.c.kind == kind)
    )
    facts = (dict(json.loads(body)["context"]["facts"]) for body in rows)
    return Counter(fact.get("native_id", "") for fact in facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command as the hub remembers it."""

    job: str
    session: str
    argv: tuple[str, ...]
    cwd: str
    outcome: str
    started: str


def commands(c: sa.Connection) -> list[Ran]:
    """Return every command, the oldest first."""
    rows = c.execute(sa.select(JOB).order_by(JOB.c.created_at_ms, JOB.c.id))
    return [_ran(row) for row in rows]


def _ran(row: sa.Row[tuple[object, ...]]) -> Ran:
    spec = json.loads(row.spec_json)
    return Ran(
        job=row.id,
        session=row.session_id,
        argv=tuple(spec["argv"]),
        cwd=spec["cwd"],
        outcome=row.outcome,
        started=row.started,
    )
