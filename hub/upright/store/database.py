"""Store: the database of one hub, opened for it alone; every write and every read goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from upright.store import schema
from upright.store.errors import StoreUnavailableError
from upright.store.guard import Guard
from upright.store.quick import QuickConnection
from upright.store.storage import Time, hub_time
from upright.store.unfit import unfit
from upright.store.writer import MAX_READERS, Writer, open_engine

T = TypeVar("T")


class Store:
    """One SQLite file: one writer, a few readers, and the lock that keeps others out.

    It is a :class:`upright.store.storage.Storage`.
    """

    time: Time = staticmethod(hub_time)

    def __init__(self, path: Path, guard: Guard) -> None:
        self._path = path
        self._guard = guard
        self._engine: Engine = open_engine(str(path))
        self._readers: Engine = open_engine(str(path), read_only=True)
        self._threads = ThreadPoolExecutor(MAX_READERS, thread_name_prefix="store-reader")
        self._writer = Writer(self._engine)
        self._closed = False

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open *path*, which must be at this program's revision. It blocks: not for a loop.

        Raises:
            StoreInUseError: another process has it open.
            RevisionError: there is no database, or its schema is another one.
        """
        path = path.resolve()
        if not path.is_file():
            schema.check(path)
        guard = Guard(path)
        try:
            schema.check(path)
        except BaseException:
            guard.release()
            raise
        return cls(path, guard)

    @property
    def path(self) -> Path:
        """The file, with symbolic links resolved."""
        return self._path

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit of work in a transaction; return what it returned, once that is on disk.

        *unit* runs on the writer's thread, alone and in the order of the calls. What it raises is
        raised here, and nothing of it is stored. It must not commit, nor do anything slow.

        Raises:
            StoreUnavailableError: the store is closed, or the disk refused; nothing is stored.
        """
        return await self._writer.run(unit)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on one snapshot, on a thread; writing is refused.

        Whatever *query* returns must not hold on to the connection.

        Raises:
            StoreUnavailableError: the store is closed, or the file can't be read now.
        """
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._query, query)

    async def close(self) -> None:
        """Finish what was begun, close the file, let the lock go; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._writer.close()
        finally:
            await asyncio.to_thread(self._let_go)

    def _query(self, query: Callable[[Connection], T]) -> T:
        try:
            with QuickConnection(self._readers) as connection, connection.begin():
                return query(connection)
        except sa.exc.DBAPIError as error:
            lost = unfit(error)
            if lost is None:
                raise
            raise lost from error

    def _let_go(self) -> None:
        self._threads.shutdown(wait=True)
        self._readers.dispose()
        self._engine.dispose()
        self._guard.release()
