"""Plain: rows as what JSON can say; a column ``x_json`` becomes ``x``, bytes become hex."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from upright.core.mandate import Trust
from upright.store.errors import UnknownIdError

Plain = dict[str, Any]
"""Keys are column names; times are epoch milliseconds, UTC, in keys that end in ``_ms``."""

_TRUSTS = frozenset({"trust", "taint"})


def plain(row: Mapping[Any, Any]) -> Plain:
    """Translate one row."""
    return dict(_item(str(key), value) for key, value in row.items())


def _item(key: str, value: object) -> tuple[str, object]:
    if key.endswith("_json") and isinstance(value, str):
        return key.removesuffix("_json"), json.loads(value)
    if key in _TRUSTS and isinstance(value, int):
        return key, Trust(value).label
    return key, value.hex() if isinstance(value, bytes) else value


def listed(c: sa.Connection, query: sa.Select[Any]) -> list[Plain]:
    """Run a query; translate all rows."""
    return [plain(row) for row in c.execute(query).mappings()]


def one(c: sa.Connection, table: sa.Table, wanted: str) -> Plain:
    """Read the row with this id.

    Raises:
        UnknownIdError: there is none.
    """
    row = c.execute(sa.select(table).where(table.c.id == wanted)).mappings().one_or_none()
    if row is None:
        raise UnknownIdError(wanted)
    return plain(row)


def columns(table: sa.Table, *, without: Iterable[str]) -> list[sa.Column[Any]]:
    """Return a table's columns but some: bodies that are too large for a list."""
    left_out = frozenset(without)
    return [column for column in table.c if column.name not in left_out]
