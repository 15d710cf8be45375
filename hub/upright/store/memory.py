"""Memory: a scratch database in this process, for runs on virtual time; nothing of it stays.

Units and queries run at once, on the loop's own thread, one after the other: nothing is waited
for that the loop doesn't know of, so that the same run goes the same way each time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from upright.store import tables
from upright.store.quick import QuickConnection
from upright.store.storage import Time, hub_time
from upright.store.unit import Connection

T = TypeVar("T")


class Memory:
    """One database in memory. It is a :class:`upright.store.storage.Storage`."""

    time: Time = staticmethod(hub_time)

    def __init__(self) -> None:
        engine = sa.create_engine("sqlite://", poolclass=StaticPool)
        sa.event.listen(engine, "connect", _connected)
        sa.event.listen(engine, "begin", _begin)
        tables.Meta.metadata.create_all(engine)
        self._engine = engine
        self._connection = QuickConnection(engine)
        self._whole = self._connection.begin()

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit of work; what it raises is raised here, and nothing of it is stored."""
        bare = self._connection.connection.cursor()
        bare.execute("SAVEPOINT unit")  # past SQLAlchemy, as the writer does
        try:
            done = unit(self._connection)
        except BaseException:
            bare.execute("ROLLBACK TO unit")
            raise
        finally:
            bare.execute("RELEASE unit")
        return done

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query; that it writes nothing is taken on trust."""
        return query(self._connection)

    def forget(self) -> None:
        """Empty every table."""
        self._whole.rollback()
        self._whole = self._connection.begin()

    async def close(self) -> None:
        """Let go of it; a second call does nothing."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        self._connection.close()
        self._engine.dispose()


def _connected(dbapi: sqlite3.Connection, _record: object) -> None:
    dbapi.isolation_level = None  # sqlite3 never sends BEGIN
    dbapi.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
