"""Shape: what a table's row looks like once ``plain`` has translated it: names, kinds, nulls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

import sqlalchemy as sa

from upright.store.schema import METADATA

_TRUSTS: Final = frozenset({"trust", "taint"})


class Kind(Enum):
    """What a value is in JSON."""

    ANY = "any"
    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    TRUTH = "truth"
    TIME = "time"  # epoch milliseconds, UTC
    TRUST = "trust"  # its label
    BYTES = "bytes"  # in hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a row; ``column`` is what it is called in the table."""

    name: str
    column: str
    kind: Kind
    nullable: bool


_KINDS: Final[tuple[tuple[type, Kind], ...]] = (
    (sa.Boolean, Kind.TRUTH),
    (sa.Integer, Kind.WHOLE),
    (sa.Float, Kind.NUMBER),
    (sa.LargeBinary, Kind.BYTES),
)


def keys(table: str) -> Iterator[Key]:
    """Yield the keys of the rows of the table with this name, in the order of its columns."""
    for column in METADATA.tables[table].c:
        kind, nullable = _kind(column), bool(column.nullable)
        name = column.name.removesuffix("_json")
        is_any = kind is Kind.ANY
        yield Key(name=name, column=column.name, kind=kind, nullable=nullable and not is_any)


def _kind(column: sa.Column[object]) -> Kind:
    if column.name.endswith("_json"):
        return Kind.ANY
    if column.name in _TRUSTS:
        return Kind.TRUST
    if column.name.endswith("_ms"):
        return Kind.TIME
    return next((kind for of, kind in _KINDS if isinstance(column.type, of)), Kind.TEXT)
