"""Quick: SQLite's connections run statements that are made once past SQLAlchemy's machinery.

A turn's step costs some seventy statements, and building a result's context costs SQLAlchemy five
times what SQLite needs for the work. A statement that comes for the second time as the very same
object is compiled once, for good, and from then on is a lookup, the driver's call, and the types'
own processors. What a plan can't express goes the long way, and nobody sees a difference.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.engine import Dialect, IteratorResult
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler

Loose = Any  # SQLAlchemy's own signatures are overloaded many times
Processor = Callable[[Any], Any]
Keys = tuple[str, ...]
_NO_KEYS: Final[Keys] = ()


class Found(IteratorResult[Any]):
    """A result whose rows are all here already; ``rowcount`` is the driver's."""

    rowcount: int


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """One placeholder: the key that gives its value, or the value itself; and its processor."""

    key: str | None
    fixed: object
    processor: Processor | None

    def of(self, given: Mapping[str, Any]) -> object:
        value = self.fixed if self.key is None else given[self.key]
        return value if self.processor is None or value is None else self.processor(value)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """A statement, compiled: its text, its placeholders, and how its rows are read."""

    sql: str
    values: tuple[_Value, ...]
    processors: tuple[tuple[int, Processor], ...]
    metadata: SimpleResultMetaData

    def bound(self, given: Mapping[str, Any]) -> tuple[object, ...]:
        return tuple([value.of(given) for value in self.values])

    def row(self, raw: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self.processors:
            return raw
        row = list(raw)
        for at, processor in self.processors:
            row[at] = processor(row[at])
        return tuple(row)


_Plans = dict[Keys, "_Plan | None"]
_PLANS: Final[WeakKeyDictionary[object, _Plans]] = WeakKeyDictionary()
"""By statement, and by the keys that it is given. None: it goes the long way."""


class QuickConnection(sa.Connection):
    """A connection to SQLite; see the module. It is made as ``QuickConnection(engine)``."""

    def execute(self, statement: Loose, parameters: Loose = None, **options: Loose) -> Loose:
        """Run a statement; what it returns reads as SQLAlchemy's own result."""
        found = None if options else self._quick(statement, parameters)
        return super().execute(statement, parameters, **options) if found is None else found

    def scalar(self, statement: Loose, parameters: Loose = None, **options: Loose) -> Loose:
        """Run a statement; return the first column of its first row, or None."""
        found = None if options else self._quick(statement, parameters)
        if found is None:
            return super().scalar(statement, parameters, **options)
        return found.scalar()

    def scalars(self, statement: Loose, parameters: Loose = None, **options: Loose) -> Loose:
        """Run a statement; return the first column of its rows."""
        return self.execute(statement, parameters, **options).scalars()

    def begin_nested(self) -> Loose:
        """Begin a part that is taken back when what is in it raises; used as ``with`` alone."""
        if not self.in_transaction():
            return super().begin_nested()
        return self._part()

    @contextmanager
    def _part(self) -> Iterator[None]:
        bare = self._bare()
        bare.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if bare.in_transaction:  # disk full, I/O error: SQLite rolled back all
                bare.execute("ROLLBACK TO part")
                bare.execute("RELEASE part")
            raise
        bare.execute("RELEASE part")

    def _bare(self) -> sqlite3.Connection:
        return cast("sqlite3.Connection", self.connection.dbapi_connection)

    def _quick(self, statement: Loose, parameters: Loose) -> Found | None:
        """Run what has a plan; None: it goes the long way, which also begins a transaction.

        Whoever listens to the connection hears every statement: then all of them go that way.
        """
        if not self.in_transaction() or self.dispatch.before_cursor_execute:
            return None
        several = isinstance(parameters, list)
        first = (parameters[0] if parameters else {}) if several else parameters
        plan = _plan(statement, tuple(first) if first else _NO_KEYS, self.dialect)
        if plan is None or (several and not parameters):
            return None
        bare = self._bare()
        try:
            if several and len(parameters) > 1:
                cursor = bare.executemany(plan.sql, [plan.bound(one) for one in parameters])
            else:
                cursor = bare.execute(plan.sql, plan.bound(first or {}))
            rows = [plan.row(row) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            raise sa.exc.DBAPIError.instance(
                plan.sql, (), error, sqlite3.Error, hide_parameters=True, dialect=self.dialect
            ) from error
        found = Found(plan.metadata, iter(rows))
        found.rowcount = cursor.rowcount
        return found


def _plan(statement: Loose, keys: Keys, dialect: Dialect) -> _Plan | None:
    """Return a statement's plan; it gets one when it comes for the second time."""
    known = _PLANS.get(statement)
    if known is None:
        _PLANS[statement] = {}
        return None
    if keys not in known:
        known[keys] = _compiled(statement, keys, dialect)
    return known[keys]


def _compiled(statement: Loose, keys: Keys, dialect: Dialect) -> _Plan | None:
    """Compile a statement; None when its text depends on the values, or it is no plain one."""
    if not isinstance(statement, sa.Select | sa.Insert | sa.Update | sa.Delete):
        return None
    compiled = statement.compile(dialect=dialect, column_keys=list(keys) or None)
    if _depends(compiled):
        return None
    values = [_value(compiled.binds[name], keys, dialect) for name in compiled.positiontup or ()]
    if None in values:
        return None
    shown = [*statement.exported_columns]
    processors = [
        (at, processor)
        for at, column in enumerate(shown)
        if (processor := _implementation(column.type, dialect).result_processor(dialect, None))
    ]
    return _Plan(
        sql=compiled.string,
        values=tuple(value for value in values if value is not None),
        processors=tuple(processors),
        metadata=SimpleResultMetaData([str(column.key) for column in shown]),
    )


def _depends(compiled: SQLCompiler) -> bool:
    """Say whether values change the text, or Python fills in some of them."""
    return bool(
        compiled.post_compile_params
        or compiled.literal_execute_params
        or compiled.insert_prefetch
        or compiled.update_prefetch
    )


def _value(bind: sa.BindParameter[Any], keys: Keys, dialect: Dialect) -> _Value | None:
    processor = _implementation(bind.type, dialect).bind_processor(dialect)
    if bind.key in keys:
        return _Value(str(bind.key), None, processor)
    if bind.required or bind.callable is not None:
        return None
    return _Value(None, bind.value, processor)


def _implementation(of: sa.types.TypeEngine[Any], dialect: Dialect) -> sa.types.TypeEngine[Any]:
    return of.dialect_impl(dialect)
