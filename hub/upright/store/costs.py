"""Costs: sums over the ledger."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from upright.store.plain import Plain, listed, plain
from upright.store.tables import LEDGER

_L = LEDGER.c


def _sums() -> list[sa.ColumnElement[Any]]:
    """``usd_micros`` is None while nothing is priced; ``unpriced`` counts the calls that aren't."""
    is_call = _L.model != ""
    zero = sa.literal(0)
    return [
        sa.func.coalesce(sa.func.sum(sa.case((is_call, 1), else_=0)), zero).label("calls"),
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
    """Return what was spent since a time: ``total``, ``by_kind``, ``by_model``, ``by_work``."""
    recent = _L.at_ms >= since_ms
    return {
        "since_ms": since_ms,
        "total": total(c, recent),
        "by_kind": by(c, _L.kind, recent),
        "by_model": by(c, _L.model, recent, _L.model != ""),
        "by_work": by(c, _L.work_id, recent, _L.work_id.is_not(None)),
    }
