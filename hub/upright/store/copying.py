"""Copying: all rows of one database into another, table by table; the two may be of either kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from upright.store import schema
from upright.store.address import Address
from upright.store.tables import EVENT, PAYLOAD
from upright.store.writer import open_engine

T = TypeVar("T")
_ROWS: Final = 500
Raw = Callable[[str], bytes]
"""Gives the bytes of a spilled payload by its digest."""


def look(where: Address, job: Callable[[sa.Connection], T]) -> T:
    """Run *job* on one snapshot of a database, beside whoever else has it open. It blocks."""
    if not isinstance(where, Path):
        return schema.on_server(where, job, isolation="REPEATABLE READ")
    engine = open_engine(str(where), read_only=True)
    try:
        with engine.connect() as connection:
            return job(connection)
    finally:
        engine.dispose()


def change(path: Path, job: Callable[[sa.Connection], T]) -> T:
    """Run *job* in one transaction on a file that nobody else has; then all is in that file."""
    engine = open_engine(str(path))
    try:
        with engine.begin() as connection:
            done = job(connection)
        with engine.connect() as connection:
            driver = connection.connection.dbapi_connection
            if driver is not None:
                driver.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return done
    finally:
        engine.dispose()


def rows(source: sa.Connection, target: sa.Connection, raw: Raw | None = None) -> dict[str, int]:
    """Copy every row; return how many of each table.

    An event's transaction means nothing in another database: it is settled. With *raw*, what a
    payload's row only names is put into it.
    """
    counts = {}
    for table in schema.METADATA.sorted_tables:
        counts[table.name] = 0
        streamed = source.execution_options(yield_per=_ROWS).execute(sa.select(table))
        for part in streamed.mappings().partitions():
            target.execute(table.insert(), [_fit(table, row, raw) for row in part])
            counts[table.name] += len(part)
    return counts


def _fit(table: sa.Table, row: Mapping[Any, Any], raw: Raw | None) -> dict[str, Any]:
    fitted = {str(name): value for name, value in row.items()}
    if table is EVENT:
        fitted["xact"] = 0
    if table is PAYLOAD and raw is not None and fitted["spilled"]:
        fitted |= {"body": raw(fitted["spilled"]), "spilled": ""}
    return fitted


def empty(target: sa.Connection) -> None:
    """Delete every row."""
    for table in reversed(schema.METADATA.sorted_tables):
        target.execute(table.delete())


def count_on(target: sa.Connection) -> None:
    """Let PostgreSQL's counters go on behind the numbers that were copied."""
    for table in schema.METADATA.sorted_tables:
        for key in table.primary_key:
            if key.autoincrement is True:
                named = sa.func.pg_get_serial_sequence(table.name, key.name)
                last = sa.select(sa.func.coalesce(sa.func.max(key), 0) + 1).scalar_subquery()
                target.execute(sa.select(sa.func.setval(named, last, sa.false())))
