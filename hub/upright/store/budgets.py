"""Budgets as rows: what is used of each cap, who was told, and what a person has set (B16.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from upright.core.budget import (
    DAY_MS,
    Amounts,
    Caps,
    Finding,
    Key,
    Level,
    Measure,
    Scope,
    Standing,
    Used,
    judge,
)
from upright.core.work import TERMINAL
from upright.store import holds, requests
from upright.store.events import About, record
from upright.store.ledger import Cost, charge
from upright.store.plain import Plain
from upright.store.tables import BUDGET, SPENT, WORK
from upright.store.unit import Connection, Unit

_SET: Final = sa.select(BUDGET)
_FOUND: Final = sa.select(SPENT).where(
    SPENT.c.scope == sa.bindparam("of_scope"),
    SPENT.c.name == sa.bindparam("of_name"),
    SPENT.c.period == sa.bindparam("of_period", type_=sa.BigInteger()),
)
_MARK: Final = SPENT.update().where(
    SPENT.c.scope == sa.bindparam("of_scope"),
    SPENT.c.name == sa.bindparam("of_name"),
    SPENT.c.period == sa.bindparam("of_period", type_=sa.BigInteger()),
)
_WARNED: Final = _MARK.values(warned_ms=sa.bindparam("at", type_=sa.BigInteger()))
_STOPPED: Final = _MARK.values(stopped_ms=sa.bindparam("at", type_=sa.BigInteger()))
_GRANTED: Final = _MARK.values(extra=SPENT.c.extra + 1, warned_ms=None, stopped_ms=None)
_FORGET: Final = _MARK.values(warned_ms=None, stopped_ms=None)
_MOST_NEAR: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a scope has used, and which notices people were given."""

    standing: Standing
    warned: bool = False
    stopped: bool = False


def caps(c: Connection, configured: Caps) -> Caps:
    """Return every cap: those of the configuration under those that people have set."""
    each: dict[Scope, dict[Measure, int]] = {}
    named: dict[Key, dict[Measure, int]] = {}
    for row in c.execute(_SET):
        scope, measure = Scope(row.scope), Measure(row.measure)
        if row.name or scope is Scope.DAY:
            named.setdefault(Key(scope, row.name), {})[measure] = row.amount
        else:
            each.setdefault(scope, {})[measure] = row.amount
    return configured.under(each, named) if each or named else configured


def told(c: Connection, keys: Iterable[Key], now_ms: int) -> list[Told]:
    """Read what scopes have used in their present period, and what people were told of it."""
    return [_told(c, key, now_ms) for key in keys]


def _told(c: Connection, key: Key, now_ms: int) -> Told:
    row = c.execute(_FOUND, _place(key, now_ms)).one_or_none()
    if row is None:
        return Told(standing=Standing(key=key))
    used = Used(**{measure.value: getattr(row, measure.value) for measure in Measure})
    standing = Standing(key=key, used=used.plus(Used(unpriced=row.unpriced)), extra=row.extra)
    stopped = row.stopped_ms is not None
    return Told(standing=standing, warned=row.warned_ms is not None, stopped=stopped)


def _place(key: Key, now_ms: int) -> dict[str, object]:
    period = key.period(now_ms)
    return {"of_scope": key.scope.value, "of_name": key.name, "of_period": period}


# ------------------------------------------------------------------ spending
def spend(u: Unit, cost: Cost) -> None:
    """Charge what a model call cost; tell people, once, of what it has brought near its cap."""
    keys = charge(u, cost).scopes()
    every = caps(u.c, u.terms.caps)
    capped = [key for key in keys if every.of(key)]
    about = About(session_id=cost.session_id, work_id=cost.work_id, turn_id=cost.turn_id or None)
    for one in told(u.c, capped, u.now_ms):
        tell(u, one, every, about)


def tell(u: Unit, one: Told, every: Caps, about: About) -> None:
    """Give the notice that is due for a scope, if it was not given yet: a warning, or a stop."""
    found = judge(one.standing, every)
    if found is None or found.level is Level.FINE:
        return
    place = {**_place(found.key, u.now_ms), "at": u.now_ms}
    said = {"budget": found.key.ref, "used": found.used, "cap": found.cap, "of": found.measure}
    if found.level is Level.WARN and not one.warned:
        u.c.execute(_WARNED, place)
        record(u, "budget.warned", about, said)
    if found.level is Level.STOP and not one.stopped:
        u.c.execute(_STOPPED, place)
        record(u, "budget.stopped", about, said)
        requests.ask(u, _question(u, found))


def _question(u: Unit, found: Finding) -> requests.Asking:
    """Ask once: a yes grants as much again; the question ends with its period."""
    renews_ms = found.key.renews_ms(u.now_ms)
    day = datetime.fromtimestamp(u.now_ms / 1000, UTC).date()
    whose = f"{found.key.scope.value} {found.key.name}".strip()
    then = (
        f"of {day}, and work goes on by itself at 00:00 UTC"
        if renews_ms
        else "for good, and the item waits for you"
    )
    prompt = (
        f"The budget of the {whose} is used up ({found.measure.value}) {then}. Answer yes to grant "
        f"as much again, or set another: upright budget set {whose} …"
    )
    subject = json.dumps({holds.SUBJECT: found.key.ref})
    asking = requests.Asking(prompt=prompt, subject_json=subject)
    if renews_ms is None:
        return asking
    return requests.Asking(prompt=prompt, subject_json=subject, life_ms=renews_ms - u.now_ms)


# ------------------------------------------------------------------ what people do
def put(u: Unit, key: Key, amounts: Amounts, by: str) -> list[str]:
    """Set caps of a scope (0: none), and let go on what they held; return the sessions woken."""
    for measure, amount in amounts.items():
        clear(u, key, measure)
        row = {"scope": key.scope.value, "name": key.name, "measure": measure.value}
        u.c.execute(BUDGET.insert().values(**row, amount=amount, by=by, at_ms=u.now_ms))
    said = {measure.value: amount for measure, amount in amounts.items()}
    record(u, "budget.set", About(), {"budget": key.ref, "by": by, **said})
    return _afresh(u, key)


def remove(u: Unit, key: Key, by: str) -> list[str]:
    """Take away what people have set for a scope: the configuration holds again."""
    for measure in Measure:
        clear(u, key, measure)
    record(u, "budget.cleared", About(), {"budget": key.ref, "by": by})
    return _afresh(u, key)


def clear(u: Unit, key: Key, measure: Measure) -> None:
    """Delete one cap that a person has set."""
    mine = sa.and_(
        BUDGET.c.scope == key.scope.value,
        BUDGET.c.name == key.name,
        BUDGET.c.measure == measure.value,
    )
    u.c.execute(BUDGET.delete().where(mine))


def grant(u: Unit, key: Key, by: str) -> list[str]:
    """Grant a scope its whole budget once more, in this period; return the sessions woken."""
    u.c.execute(_GRANTED, _place(key, u.now_ms))
    record(u, "budget.granted", About(), {"budget": key.ref, "by": by})
    return holds.release(u, key.ref)


def _afresh(u: Unit, key: Key) -> list[str]:
    """Forget which notices were given: they are for the caps that hold now."""
    if key.name or key.scope is Scope.DAY:
        u.c.execute(_FORGET, _place(key, u.now_ms))
    else:
        every = SPENT.update().where(
            SPENT.c.scope == key.scope.value, SPENT.c.period == key.period(u.now_ms)
        )
        u.c.execute(every.values(warned_ms=None, stopped_ms=None))
    return holds.release(u, key.ref)


# ------------------------------------------------------------------ what is shown
def listing(c: Connection, configured: Caps, now_ms: int) -> list[Plain]:
    """List each scope that has a cap and has used something, and each cap that has a name.

    Rows: ``scope``, ``name``, ``measure``, ``used``, ``cap``, ``percent``, ``level``, ``warned``,
    ``stopped``, ``extra``, ``unpriced``, ``renews_ms``.
    """
    every = caps(c, configured)
    today = now_ms // DAY_MS
    # of items those that are near their cap or were told of, the last changed first
    rows = c.execute(
        sa.select(SPENT.c.scope, SPENT.c.name)
        .where(SPENT.c.period.in_([0, today]))
        .order_by(SPENT.c.scope, SPENT.c.changed_ms.desc())
        .limit(500)
    )
    keys = {Key(Scope(row.scope), row.name) for row in rows} | set(every.named)
    found = (_shown(one, every, now_ms) for one in told(c, sorted(keys), now_ms))
    return [row for rows_of in found for row in rows_of]


def near(c: Connection, configured: Caps, now_ms: int) -> list[Plain]:
    """List what people were warned of and what is used up, as :func:`listing`; no ended item's."""
    every = caps(c, configured)
    is_told = sa.or_(SPENT.c.warned_ms.is_not(None), SPENT.c.stopped_ms.is_not(None))
    rows = c.execute(
        sa.select(SPENT.c.scope, SPENT.c.name)
        .join(WORK, WORK.c.id == SPENT.c.name, isouter=True)
        .where(
            SPENT.c.period.in_([0, now_ms // DAY_MS]),
            is_told,
            sa.or_(WORK.c.id.is_(None), WORK.c.state.not_in(TERMINAL)),
        )
        .order_by(SPENT.c.changed_ms.desc())
        .limit(_MOST_NEAR)
    )
    keys = sorted(Key(Scope(row.scope), row.name) for row in rows)
    found = (_shown(one, every, now_ms) for one in told(c, keys, now_ms))
    return [row for rows_of in found for row in rows_of if row["level"] != Level.FINE]


def _shown(one: Told, every: Caps, now_ms: int) -> Sequence[Plain]:
    standing = one.standing
    return [
        {
            "scope": standing.key.scope.value,
            "name": standing.key.name,
            "measure": measure.value,
            "used": standing.used.of(measure),
            "cap": amount * (1 + standing.extra),
            "percent": round(100 * standing.used.of(measure) / (amount * (1 + standing.extra)), 1),
            "level": _level(standing, measure, amount, every),
            "warned": one.warned,
            "stopped": one.stopped,
            "extra": standing.extra,
            "unpriced": standing.used.unpriced,
            "renews_ms": standing.key.renews_ms(now_ms),
        }
        for measure, amount in every.of(standing.key).items()
    ]


def _level(standing: Standing, measure: Measure, amount: int, every: Caps) -> str:
    alone: Mapping[Key, Any] = {standing.key: {measure: amount}}
    found = judge(standing, Caps(named=alone, warn_percent=every.warn_percent))
    return found.level.value if found else Level.FINE.value
