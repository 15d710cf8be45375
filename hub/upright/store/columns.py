"""Columns: what the two databases call differently, and where they must agree."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Index,
    Integer,
    String,
    false,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

SERIAL: Final = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts INTEGER keys only
TEXT: Final = String().with_variant(String(collation="C"), "postgresql")
"""Sorted by bytes on both: ids are looked up by ranges of their first letters."""


def serial() -> Column[int]:
    """Return a key that counts up."""
    return Column(SERIAL, primary_key=True, autoincrement=True)


def big(*, null: bool = True, index: bool = False) -> Column[int]:
    """Return a column of 64 bits: a time, a size."""
    return Column(BigInteger, nullable=null, index=index)


def flag() -> Column[bool]:
    """Return a truth that is false where nobody said otherwise."""
    return Column(Boolean, nullable=False, server_default=false())


def live_index(name: str, only: str, *columns: str) -> Index:
    """Return an index of those rows alone that *only*, a condition in SQL, holds for.

    What has ended is not in it, so that the cost of a look does not grow with the past.
    """
    return Index(name, *columns, sqlite_where=text(only), postgresql_where=text(only))


class OwnXact(FunctionElement[int]):
    """The number of the transaction that runs; 0 on SQLite, where there is one writer alone.

    Serial numbers are given out before the commit, so a lower one may come later than a higher:
    with this beside them, and :class:`OldestXact`, a reader knows which are still to come.
    """

    type: TypeEngine[int] = BigInteger()
    inherit_cache: bool | None = True


class OldestXact(FunctionElement[int]):
    """The oldest transaction that has not ended; what has a lower number is settled."""

    type: TypeEngine[int] = BigInteger()
    inherit_cache: bool | None = True


@compiles(OwnXact, "sqlite")
def _nobody(*_: object, **__: object) -> str:
    return "0"


@compiles(OldestXact, "sqlite")
def _all_ended(*_: object, **__: object) -> str:
    return "1"


@compiles(OwnXact, "postgresql")
def _own(*_: object, **__: object) -> str:
    return "pg_current_xact_id()::text::bigint"


@compiles(OldestXact, "postgresql")
def _oldest(*_: object, **__: object) -> str:
    return "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


class InJson(FunctionElement[str]):
    """A text inside a column of JSON text, by its place: ``content.title``; NULL without one."""

    type: TypeEngine[str] = String()
    inherit_cache: bool | None = False  # the place is no part of what is compared

    def __init__(self, column: ColumnElement[str], place: str) -> None:
        super().__init__(column)
        self.place = place


@compiles(InJson, "sqlite")
def _extract(element: InJson, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_extract({compiler.process(element.clauses, **kw)}, '$.{element.place}')"


@compiles(InJson, "postgresql")
def _path(element: InJson, compiler: SQLCompiler, **kw: object) -> str:
    place = element.place.replace(".", ",")
    return f"(({compiler.process(element.clauses, **kw)})::json #>> '{{{place}}}')"
