"""Outsider: looks at a database that a hub has open, and asks nobody for leave: for benches alone.

It takes neither the guard nor the hold, and what it reads is one snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from upright.store.address import Address, Server, driven
from upright.store.errors import StoreUnavailableError
from upright.store.pool import PoolLimits, connect_args
from upright.store.writer import open_engine

T = TypeVar("T")
NAME: Final = "upright outsider"
_OTHERS: Final = sa.text(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND application_name <> :name ORDER BY pid"
)
_CUT: Final = sa.text("SELECT pg_terminate_backend(:pid)")


async def look(where: Address, query: Callable[[sa.Connection], T]) -> T:
    """Run a query on one snapshot of a database that may be another process's.

    Raises:
        StoreUnavailableError: it can't be read or reached.
    """
    try:
        if isinstance(where, Path):
            return await asyncio.to_thread(_look_at_file, where, query)
        return await _look_at_server(where, query)
    except (OSError, sa.exc.DBAPIError) as error:
        raise StoreUnavailableError(str(where), str(error)) from error


def _look_at_file(path: Path, query: Callable[[sa.Connection], T]) -> T:
    engine = open_engine(str(path), read_only=True)
    try:
        with engine.connect() as connection:
            return query(connection)
    finally:
        engine.dispose()


async def _look_at_server(server: Server, query: Callable[[sa.Connection], T]) -> T:
    engine = await asyncio.to_thread(
        create_async_engine,
        driven(server),
        poolclass=NullPool,
        connect_args=connect_args(server, PoolLimits(), NAME),
    )
    try:
        async with engine.connect() as connection:
            snapshot = await connection.execution_options(isolation_level="REPEATABLE READ")
            return await snapshot.run_sync(query)
    finally:
        await engine.dispose()


def backends(c: sa.Connection) -> list[int]:
    """Return the process ids of PostgreSQL's backends that serve others on this database."""
    return list(c.scalars(_OTHERS, {"name": NAME}))


def cut_off(c: sa.Connection) -> int:
    """End every other connection to this database of PostgreSQL's; return how many there were."""
    found = backends(c)
    for pid in found:
        c.execute(_CUT, {"pid": pid})
    return len(found)
