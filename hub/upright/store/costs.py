"""Costs: sums over the ledger, by source, policy, item, session, agent, model or day (B16.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa

from upright.core.budget import DAY_MS
from upright.store.ledger import CALLS
from upright.store.plain import Plain, listed, plain
from upright.store.tables import LEDGER

_L = LEDGER.c
_DAY: Final = sa.cast(_L.at_ms, sa.BigInteger) // sa.literal(DAY_MS, sa.BigInteger)
WEEK_DAYS: Final = 7
FORECAST: Final = ("calls", "tokens_input", "tokens_cached", "tokens_output", "usd_micros")


def _sums() -> list[sa.ColumnElement[Any]]:
    """``usd_micros`` is None while nothing is priced; ``unpriced`` counts the calls that aren't.

    ``beside`` are those of the calls that were no step of a turn, ``retries`` the requests to a
    model that gave nothing. What those used is in the sums of tokens and money.
    """
    is_call = _L.kind.in_(CALLS)
    beside = sa.and_(is_call, _L.beside)
    zero = sa.literal(0)
    calls = sa.func.coalesce(sa.func.sum(sa.case((is_call, 1), else_=0)), zero)
    tries = sa.func.coalesce(sa.func.sum(sa.case((_L.tries > 0, _L.tries), else_=0)), zero)
    # a row that was written before tries were counted has none
    first = sa.func.coalesce(
        sa.func.sum(sa.case((sa.and_(is_call, _L.tries > 0), 1), else_=0)), zero
    )
    return [
        calls.label("calls"),
        sa.func.coalesce(sa.func.sum(sa.case((beside, 1), else_=0)), zero).label("beside"),
        sa.cast(tries - first, sa.BigInteger).label("retries"),
        *(
            sa.func.coalesce(_whole(sa.func.sum(column)), zero).label(column.name)
            for column in (_L.tokens_input, _L.tokens_cached, _L.tokens_output)
        ),
        _whole(sa.func.sum(_L.usd_micros)).label("usd_micros"),
        sa.func.coalesce(
            sa.func.sum(sa.case((sa.and_(is_call, _L.usd_micros.is_(None)), 1), else_=0)), zero
        ).label("unpriced"),
        sa.func.coalesce(sa.func.sum(_L.seconds), 0.0).label("seconds"),
    ]


def _whole(total: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.cast(total, sa.BigInteger)  # PostgreSQL sums up to decimals, which are no JSON


SUMS: Final = tuple(_sums())


def total(c: sa.Connection, *where: sa.ColumnElement[bool]) -> Plain:
    """Sum up the rows for which all of *where* holds; zeros when there are none."""
    return plain(c.execute(sa.select(*SUMS).where(*where)).mappings().one())


def by(
    c: sa.Connection, column: sa.ColumnElement[Any], *where: sa.ColumnElement[bool]
) -> list[Plain]:
    """Sum up by *column*, in its order."""
    chosen = sa.select(column, *SUMS).where(*where)
    return listed(c, chosen.group_by(column).order_by(column))


def costs(c: sa.Connection, since_ms: int = 0) -> Plain:
    """Return what was spent since a time, in all and by what: ``total``, ``by_kind`` and others."""
    recent = _L.at_ms >= since_ms
    return {
        "since_ms": since_ms,
        "total": total(c, recent),
        "by_kind": by(c, _L.kind, recent),
        "by_model": by(c, _L.model, recent, _L.model != ""),
        "by_session": by(c, _L.session_id, recent),
        "by_work": by(c, _L.work_id, recent, _L.work_id.is_not(None)),
    }


class Facet(StrEnum):
    """By what costs are added up."""

    SOURCE = "source"
    POLICY = "policy"
    ITEM = "item"
    SESSION = "session"
    AGENT = "agent"
    MODEL = "model"
    DAY = "day"


_COLUMNS: Final[Mapping[Facet, sa.ColumnElement[Any]]] = {
    Facet.SOURCE: _L.source,
    Facet.POLICY: _L.policy,
    Facet.ITEM: sa.func.coalesce(_L.work_id, ""),
    Facet.SESSION: _L.session_id,
    Facet.AGENT: _L.agent,
    Facet.MODEL: _L.model,
    Facet.DAY: _DAY,
}


def grouped(c: sa.Connection, facet: Facet, since_ms: int = 0) -> list[Plain]:
    """Add up since a time by one facet, ``name`` in each row; days (UTC) in their order."""
    rows = by(c, _COLUMNS[facet].label("name"), _L.at_ms >= since_ms)
    if facet is Facet.DAY:
        return [{**row, "name": _date(row["name"])} for row in rows]
    return sorted(rows, key=lambda row: (-(row["usd_micros"] or 0), -row["tokens_input"]))


def forecast(c: sa.Connection, source: str, now_ms: int) -> Plain:
    """Say what a source costs, from its last seven whole days (UTC); a quiet day counts as one.

    ``days`` is how many of them it has been known for, ``a_day`` the mean of each sum, ``most``
    the dearest day's, ``month`` thirty times the mean; ``today`` what it has cost until now.
    """
    midnight = now_ms // DAY_MS * DAY_MS
    mine = _L.source == source
    first = c.scalar(sa.select(sa.func.min(_L.at_ms)).where(mine))
    known = 0 if first is None else midnight // DAY_MS - int(first) // DAY_MS
    days = min(known, WEEK_DAYS)
    span = sa.and_(mine, _L.at_ms >= midnight - days * DAY_MS, _L.at_ms < midnight)
    rows = by(c, _DAY.label("name"), span) if days else []
    sums = {name: [int(row[name] or 0) for row in rows] for name in FORECAST}
    return {
        "source": source,
        "days": days,
        "a_day": {name: sum(found) // days if days else 0 for name, found in sums.items()},
        "most": {name: max(found, default=0) for name, found in sums.items()},
        "month": {name: 30 * sum(found) // days if days else 0 for name, found in sums.items()},
        "today": total(c, mine, _L.at_ms >= midnight),
    }


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).date().isoformat()
