"""Hold: one hub a PostgreSQL database; others are refused by the first one's name."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from upright.store.address import Server, driven
from upright.store.errors import StoreInUseError
from upright.store.pool import PoolLimits, connect_args

KEY: Final = int.from_bytes(b"upright\0", "big")
"""The advisory lock's number; such locks are apart for each database."""
_KEY: Final = sa.bindparam("key", KEY, sa.BigInteger)
_TAKE: Final = sa.select(sa.func.pg_try_advisory_lock(_KEY))
_TAKE_FOR_NOW: Final = sa.select(sa.func.pg_try_advisory_xact_lock(_KEY))
_HOLDER: Final = sa.text("""
SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND (l.classid::bigint << 32 | l.objid::bigint) = :key
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
""").bindparams(_KEY)


class Hold:
    """Holds the advisory lock on a connection of its own; it goes with the connection."""

    def __init__(self, server: Server, limits: PoolLimits) -> None:
        """Hold nothing yet. This loads the driver: not for a loop."""
        name = f"upright {socket.gethostname()} {os.getpid()}"[:63]
        self._engine = create_async_engine(
            driven(server),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args=connect_args(server, limits, name),
        )
        self._server = server
        self._connection: AsyncConnection | None = None
        self._is_closed: Callable[[], bool] = lambda: True  # the driver's own word
        self._taking = asyncio.Lock()

    async def take(self) -> None:
        """Take the lock, anew when its connection was lost.

        Raises:
            StoreInUseError: another hub has this database.
            OSError, sqlalchemy.exc.DBAPIError: the server can't be reached.
        """
        if not self._is_closed():
            return
        async with self._taking:
            if self._is_closed():
                await self.release()
                await self._connect()

    async def release(self) -> None:
        """Let go; a second call does nothing."""
        connection, self._connection = self._connection, None
        self._is_closed = lambda: True
        if connection is not None:
            await connection.close()

    async def _connect(self) -> None:
        connection = await self._engine.connect()
        try:
            await connection.run_sync(take, self._server, _TAKE)
            driver = (await connection.get_raw_connection()).driver_connection
        except BaseException:
            await connection.close()
            raise
        if driver is not None:
            self._connection, self._is_closed = connection, driver.is_closed


def take(c: sa.Connection, server: Server, statement: sa.Select[bool] = _TAKE_FOR_NOW) -> None:
    """Take the lock until the transaction ends, or as *statement* says.

    Raises:
        StoreInUseError: names who has it.
    """
    if c.scalar(statement):
        return
    words = str(c.scalar(_HOLDER) or "").split()
    if len(words) == 3 and words[2].isdigit():
        raise StoreInUseError(str(server), int(words[2]), host=words[1])
    raise StoreInUseError(str(server), None)
