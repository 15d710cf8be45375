"""Ledger: a row for each model call, job and delivery, and counts for the budgets (B16.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from upright.core.budget import Key, Scope
from upright.store.tables import DELIVERY, LEDGER, RELATION, SESSION, SPENT, TRIGGER, WORK
from upright.store.unit import Unit

CALLS: Final = ("model", "compaction")
"""The kinds of rows that are each one model call that answered."""
HUB_SOURCE: Final = "hub"
CHILD_OF: Final = "child_of"
MOST_PARENTS: Final = 16
_COUNTS: Final = ("tokens", "usd_micros", "steps", "retries", "repeats", "millis", "unpriced")

# statements of the hot path are made once: building one costs more than running it
_CHARGE: Final = LEDGER.insert()
_LAST_TAKEN: Final = (
    sa.select(DELIVERY.c.trigger_id)
    .join(TRIGGER, TRIGGER.c.id == DELIVERY.c.trigger_id)
    .where(
        DELIVERY.c.session_id == sa.bindparam("session"),
        DELIVERY.c.taken_n.is_not(None),
        TRIGGER.c.source != HUB_SOURCE,
    )
    .order_by(DELIVERY.c.trigger_id.desc())
    .limit(1)
    .scalar_subquery()
)
_CAUSE: Final = (
    sa.select(SESSION.c.agent, WORK.c.id.label("work"), TRIGGER.c.source, TRIGGER.c.rule)
    .join_from(SESSION, WORK, WORK.c.id == SESSION.c.work_id, isouter=True)
    .join(TRIGGER, TRIGGER.c.id == sa.func.coalesce(WORK.c.trigger_id, _LAST_TAKEN), isouter=True)
    .where(SESSION.c.id == sa.bindparam("session"))
)
_PARENT: Final = (
    sa.select(WORK.c.id, TRIGGER.c.source, TRIGGER.c.rule)
    .join_from(RELATION, WORK, WORK.c.id == RELATION.c.other_id)
    .join(TRIGGER, TRIGGER.c.id == WORK.c.trigger_id)
    .where(RELATION.c.work_id == sa.bindparam("child"), RELATION.c.kind == CHILD_OF)
    .limit(1)
)


def _growing(new: sqlite.Insert | postgresql.Insert) -> sa.Insert:
    """Add to the counts of a scope; its row is made when it is not there yet."""
    grown = {count: SPENT.c[count] + new.excluded[count] for count in _COUNTS}
    return new.on_conflict_do_update(
        index_elements=["scope", "name", "period"],
        set_={**grown, "changed_ms": new.excluded.changed_ms},
    )


_GROW: Final[Mapping[str, sa.Insert]] = {
    "sqlite": _growing(sqlite.insert(SPENT)),
    "postgresql": _growing(postgresql.insert(SPENT)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One row of the ledger. Whose source, policy and agent it is, is looked up.

    ``tries``: how many requests it took; with the kind ``retry`` those that failed. ``repeats``:
    how many of the tool calls in it had been made before.
    """

    kind: str
    session_id: str
    work_id: str | None = None
    turn_id: str = ""
    model: str = ""
    tokens_input: int = 0
    tokens_cached: int = 0
    tokens_output: int = 0
    usd_micros: int | None = None
    seconds: float = 0.0
    tries: int = 0
    beside: bool = False
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """For whom a session works: the source and the rule of its trigger, its agent, its item."""

    source: str = ""
    policy: str = ""
    agent: str = ""
    work: str = ""

    def scopes(self) -> tuple[Key, ...]:
        """Return the scopes that its costs count in, in one order always."""
        named = (
            (Scope.AGENT, self.agent),
            (Scope.ITEM, self.work),
            (Scope.POLICY, self.policy),
            (Scope.SOURCE, self.source),
        )
        return (Key(Scope.DAY), *(Key(scope, name) for scope, name in named if name))


def cause(c: sa.Connection, session: str) -> Cause:
    """Look up for whom a session works.

    A child item counts for its parent's trigger; what the router does, for the newest trigger that
    it has taken from outside.
    """
    row = c.execute(_CAUSE, {"session": session}).one_or_none()
    if row is None:
        return Cause()
    source, rule = row.source or "", row.rule or ""
    child, left = row.work, MOST_PARENTS
    while source == HUB_SOURCE and child and left:
        above = c.execute(_PARENT, {"child": child}).one_or_none()
        if above is None:
            break
        child, source, rule, left = above.id, above.source, above.rule, left - 1
    return Cause(source=source, policy=rule, agent=row.agent, work=row.work or "")


def charge(u: Unit, cost: Cost) -> Cause:
    """Write down what something cost, and add it to the counts of each of its scopes."""
    found = cause(u.c, cost.session_id)
    row: dict[str, Any] = asdict(cost)
    repeats = row.pop("repeats")
    given = {"source": found.source, "policy": found.policy, "agent": found.agent}
    u.c.execute(_CHARGE, {"at_ms": u.now_ms, **row, **given})
    is_call = cost.kind in CALLS
    counts = {
        "tokens": cost.tokens_input + cost.tokens_output,
        "usd_micros": cost.usd_micros or 0,
        "steps": int(is_call),
        "retries": max(cost.tries - is_call, 0),
        "repeats": repeats,
        "millis": round(1000 * cost.seconds),
        "unpriced": int(is_call and cost.usd_micros is None),
        "extra": 0,
        "changed_ms": u.now_ms,
    }
    scopes = [
        {"scope": key.scope.value, "name": key.name, "period": key.period(u.now_ms), **counts}
        for key in found.scopes()
    ]
    u.c.execute(_GROW[u.c.dialect.name], scopes)
    return found
