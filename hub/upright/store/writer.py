"""Writer: the one thread that writes to SQLite, many units of work to a commit.

A unit is a plain function of a connection. Units that queue up while a commit is under way share
the next transaction, each under its own savepoint: one that fails takes nothing else with it.
A caller gets its answer after the commit.

Order: units run in the order in which they were handed in. Cancelling the caller does not take a
unit back: it may be committed already.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from upright.store.errors import StoreUnavailableError
from upright.store.quick import QuickConnection
from upright.store.unfit import said, unfit

T = TypeVar("T")
Unit = Callable[[Connection], T]
MAX_UNITS: Final = 256  # bounds how long the first caller of a group waits
MAX_READERS: Final = 4
_BUSY_MS: Final = 5000
_WAL_BYTES: Final = 64 * 1024 * 1024  # a log that grew beyond is cut back at the next checkpoint


def open_engine(path: str, *, read_only: bool = False, is_new: bool = False) -> Engine:
    """Open the file so that SQLAlchemy, and nobody else, decides where a transaction begins.

    Python's sqlite3 begins one by itself, late, and only before INSERT, UPDATE and DELETE: a
    SAVEPOINT sent first would stand outside, and its RELEASE would commit. BEGIN IMMEDIATE, since
    a transaction that reads first and writes later fails at once when another has written in
    between (SQLITE_BUSY_SNAPSHOT, which no busy_timeout waits for).

    A file that *is_new* is told, before anything is in it, that its free pages can be given back.
    """
    url = f"sqlite:///{path}"
    if read_only:
        engine = create_engine(url, poolclass=QueuePool, pool_size=MAX_READERS, max_overflow=0)
    else:
        engine = create_engine(url, poolclass=NullPool)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "connect")
    def _connect(dbapi: sqlite3.Connection, _record: object) -> None:
        dbapi.isolation_level = None  # sqlite3 never sends BEGIN
        for pragma in (
            *(("auto_vacuum=INCREMENTAL",) if is_new else ()),
            f"busy_timeout={_BUSY_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "temp_store=MEMORY",  # a file of its own would stay behind after a kill -9
            f"journal_size_limit={_WAL_BYTES}",
            f"query_only={int(read_only)}",
        ):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


@dataclass(slots=True, eq=False)
class _Waiting:
    unit: Unit[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.future.done():  # the caller was cancelled
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs units of work, in order, on a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._connection: Connection | None = None  # the thread's own
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="store-writer", daemon=True)
        self._thread.start()

    async def run(self, unit: Unit[T]) -> T:
        """Run *unit* and return what it returned, once that is on disk.

        Raises:
            StoreUnavailableError: the writer is closed, or the whole transaction was lost;
                nothing was stored.
        """
        if self._closed.is_set():
            raise StoreUnavailableError("the store is closed")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(unit=unit, future=loop.create_future(), loop=loop)
        self._queue.put(waiting)
        if self._closed.is_set():  # the thread died between the two lines
            self._refuse()
        result: T = await waiting.future
        return result

    async def close(self) -> None:
        """Finish what is queued, then stop; whatever comes later is refused."""
        if not self._closed.is_set():
            self._closed.set()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        group: tuple[_Waiting, ...] = ()
        try:
            while (first := self._queue.get()) is not None:
                group = (first, *self._queued())
                self._commit(group)
                _answer(group)
                group = ()
        finally:  # a caller must never wait for a thread that is gone
            self._closed.set()
            self._refuse(group)
            if self._connection is not None:
                self._connection.close()

    def _queued(self) -> Iterator[_Waiting]:
        """Take what has queued up, without waiting."""
        for _ in range(MAX_UNITS - 1):
            try:
                following = self._queue.get_nowait()
            except Empty:
                return
            if following is None:
                self._queue.put(None)
                return
            yield following

    def _refuse(self, group: Sequence[_Waiting] = ()) -> None:
        while rest := (*group, *self._queued()):
            _mark(rest, StoreUnavailableError("the store is closed"))
            _answer(rest)
            group = ()

    def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            if self._connection is None:
                self._connection = QuickConnection(self._engine)
            with self._connection.begin():
                for waiting in group:
                    _run_one(self._connection, waiting)
        except Exception as error:  # noqa: BLE001  # nobody of this group may be told "stored"
            lost = StoreUnavailableError(said(error))
            lost.__cause__ = error
            _mark(group, lost)


def _run_one(connection: Connection, waiting: _Waiting) -> None:
    bare = cast("sqlite3.Connection", connection.connection.dbapi_connection)
    bare.execute("SAVEPOINT unit")  # past SQLAlchemy, which would take longer for it than SQLite
    try:
        waiting.result = waiting.unit(connection)
    except Exception as error:  # the caller gets it; the group goes on
        waiting.error = unfit(error) or error
        if not bare.in_transaction:  # disk full, I/O error: SQLite rolled back all
            raise
        bare.execute("ROLLBACK TO unit")
    bare.execute("RELEASE unit")


def _mark(group: Sequence[_Waiting], lost: StoreUnavailableError) -> None:
    for waiting in group:
        waiting.error = waiting.error or lost


def _answer(group: Sequence[_Waiting]) -> None:
    """Hand the answers to the callers' loops, one call a loop."""
    for loop in {waiting.loop for waiting in group}:
        mine = [waiting for waiting in group if waiting.loop is loop]
        with suppress(RuntimeError):  # that loop is closed, and its callers are gone with it
            loop.call_soon_threadsafe(_settle, mine)


def _settle(group: Sequence[_Waiting]) -> None:
    for waiting in group:
        waiting.settle()
