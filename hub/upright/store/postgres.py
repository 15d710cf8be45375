"""PostgreSQL as a store: one transaction a unit, run again when others were in its way.

Units check first and then write, as for one writer alone; SERIALIZABLE makes that right among
several. What loses a race is run again on a new snapshot: a unit is a function of its connection.
What loses some in a row is run while no other unit is: a long one would never come through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from upright.store import schema
from upright.store.address import Server
from upright.store.errors import StoreInUseError, StoreUnavailableError
from upright.store.hold import Hold
from upright.store.pool import STANDBY, Fate, PoolLimits, fate, open_engine, said, sqlstate
from upright.store.storage import Time

T = TypeVar("T")
_BEGIN: Final = sa.text(
    "SELECT pg_current_xact_id()::text AS xact,"
    " (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms"
)
_STATUS: Final = sa.text("SELECT pg_xact_status(CAST(CAST(:xact AS text) AS xid8))")
_NOW_MS: Final = "upright_now_ms"
_UNKNOWN: Final = "it went away during a commit, and whether that is stored isn't known"


def database_time(c: sa.Connection, _at_ms: int) -> int:
    """Return the server's time at the beginning of this transaction: all hubs go by it."""
    return int(c.get_execution_options()[_NOW_MS])


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresParts:
    """What a store on PostgreSQL works with; ``roll`` is uniform in [0, 1)."""

    engine: AsyncEngine
    hold: Hold
    limits: PoolLimits
    roll: Callable[[], float]
    time: Time


class PostgresStore:
    """One database of a server, a few connections, and the lock that keeps other hubs out.

    It is a :class:`upright.store.storage.Storage`. It belongs to the loop in which it was opened.
    """

    def __init__(self, parts: PostgresParts) -> None:
        self.time: Time = parts.time
        self._parts = parts
        self._writers = parts.engine.execution_options(isolation_level="SERIALIZABLE")
        self._readers = parts.engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._writing = asyncio.Semaphore(parts.limits.writers)
        self._reading = asyncio.Semaphore(parts.limits.readers)
        self._outrun = asyncio.Lock()  # one at a time gathers all permits
        self._closed = False

    @classmethod
    async def open(
        cls,
        server: Server,
        *,
        roll: Callable[[], float],
        limits: PoolLimits | None = None,
        time: Time = database_time,
    ) -> PostgresStore:
        """Open the database at *server*, which must be at this program's revision.

        Raises:
            StoreInUseError: another hub has it open.
            RevisionError: its schema is another one, or there is none.
            StoreUnavailableError: it can't be reached, or the driver isn't installed.
        """
        limits = limits or PoolLimits()
        engine, hold = await asyncio.to_thread(_made, server, limits)
        parts = PostgresParts(engine=engine, hold=hold, limits=limits, roll=roll, time=time)
        store = cls(parts)
        try:
            await store._check(server)
        except BaseException:
            await store.close()
            raise
        return store

    async def write(self, unit: Callable[[sa.Connection], T]) -> T:
        """Run a unit of work in a transaction; return what it returned, once that is stored.

        *unit* runs on the loop, as often as it takes; what it raises is raised here, and nothing
        of it is stored. Several run side by side. Cancelling the caller takes the unit back,
        unless its commit was under way.

        Raises:
            StoreUnavailableError: the store is closed, the database can't be had, or others were
                in the way each time.
        """
        try:
            async with self._allowed(self._writing):
                return await self._again(lambda: self._write_once(unit), self._parts.limits.races)
        except _OutrunError:  # others are quicker each time, and would be for ever
            async with self._alone():
                return await self._again(lambda: self._write_once(unit))

    async def read(self, query: Callable[[sa.Connection], T]) -> T:
        """Run a query on one snapshot, on the loop; writing is refused.

        Raises:
            StoreUnavailableError: the store is closed, or the database can't be had.
        """
        async with self._allowed(self._reading):
            return await self._again(lambda: self._read_once(query))

    async def close(self) -> None:
        """Finish what was begun, close the connections, let the lock go; twice is once."""
        if self._closed:
            return
        self._closed = True
        limits = self._parts.limits
        try:
            async with asyncio.timeout(limits.wait_s), self._outrun:
                for _ in range(limits.writers):
                    await self._writing.acquire()
                for _ in range(limits.readers):
                    await self._reading.acquire()
        except TimeoutError:
            pass  # what still runs loses its connection now, and is rolled back
        await self._parts.hold.release()
        await self._parts.engine.dispose()

    # ------------------------------------------------------------------ attempts
    @asynccontextmanager
    async def _allowed(self, permits: asyncio.Semaphore) -> AsyncIterator[None]:
        """Wait for a permit, which is a free connection: a bounded time."""
        self._refuse_when_closed()
        try:
            async with asyncio.timeout(self._parts.limits.wait_s):
                await permits.acquire()
        except TimeoutError as error:
            busy = "all connections to the database are busy"
            raise StoreUnavailableError(busy) from error
        try:
            self._refuse_when_closed()
            yield
        finally:
            permits.release()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait until no unit of this hub runs, and keep the others waiting meanwhile."""
        async with self._outrun, AsyncExitStack() as permits:
            for _ in range(self._parts.limits.writers):
                await permits.enter_async_context(self._allowed(self._writing))
            yield

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")

    async def _again(self, attempt: Callable[[], Awaitable[T]], races: int | None = None) -> T:
        """Attempt until it is done, refused for its own fault, or out of tries.

        Raises:
            _OutrunError: others were in its way *races* times.
        """
        again, tries = self._parts.limits.again, 0
        while True:
            try:
                return await attempt()
            except (OSError, sa.exc.DBAPIError) as error:
                tries += 1
                means = fate(error)
                if means is Fate.OWN or (means is Fate.ONCE_MORE and tries > 1):
                    raise
                if means is Fate.AGAIN and tries == races:
                    raise _OutrunError from error
                if again.exhausted(tries):
                    raise StoreUnavailableError(said(error)) from error
            await asyncio.sleep(again.delay_s(tries, roll=self._parts.roll()))

    async def _write_once(self, unit: Callable[[sa.Connection], T]) -> T:
        try:
            await self._parts.hold.take()
        except StoreInUseError as error:  # while our own connection was lost
            raise StoreUnavailableError(str(error)) from error
        attempt = _Attempt()
        try:
            async with self._writers.connect() as connection:
                await connection.run_sync(_run, unit, attempt)
        except (OSError, sa.exc.DBAPIError) as error:
            if isinstance(error, sa.exc.DBAPIError) and sqlstate(error) in STANDBY:
                raise StoreUnavailableError(said(error)) from error
            in_doubt = attempt.is_committing and fate(error) is Fate.LOST
            if not in_doubt or not await self._is_committed(attempt.xact):
                raise
        result: T = attempt.result
        return result

    async def _read_once(self, query: Callable[[sa.Connection], T]) -> T:
        async with self._readers.connect() as connection:
            return await connection.run_sync(_look, query)

    async def _is_committed(self, xact: str) -> bool:
        """Ask the server what became of a commit whose answer was lost.

        Raises:
            StoreUnavailableError: nobody knows.
        """
        again, tries, found = self._parts.limits.again, 0, "in progress"
        while found == "in progress" and not again.exhausted(tries):
            await asyncio.sleep(again.delay_s(tries, roll=self._parts.roll()))
            tries += 1
            try:
                found = await self._again(lambda: self._read_once(lambda c: _status(c, xact)))
            except StoreUnavailableError as error:
                raise StoreUnavailableError(str(error), _UNKNOWN) from error
        if found not in {"committed", "aborted"}:
            raise StoreUnavailableError("the database", _UNKNOWN)
        return found == "committed"

    async def _check(self, server: Server) -> None:
        """Take the lock, and look at the revision."""
        try:
            await self._parts.hold.take()
            async with self._readers.connect() as connection:
                found = await connection.run_sync(schema.revision)
        except (OSError, sa.exc.DBAPIError) as error:
            raise StoreUnavailableError(str(server), said(error)) from error
        await asyncio.to_thread(schema.require, server, found)  # it looks at the migrations


class _OutrunError(Exception):
    """Others were in a unit's way again and again."""


@dataclass(slots=True)
class _Attempt:
    """How far one attempt at a unit got."""

    xact: str = ""
    result: Any = None
    is_committing: bool = False


def _made(server: Server, limits: PoolLimits) -> tuple[AsyncEngine, Hold]:
    return open_engine(server, limits), Hold(server, limits)


def _run(c: sa.Connection, unit: Callable[[sa.Connection], object], attempt: _Attempt) -> None:
    with _transaction(c):
        began = c.execute(_BEGIN).one()
        attempt.xact = began.xact
        c.execution_options(**{_NOW_MS: began.now_ms})
        attempt.result = unit(c)
        attempt.is_committing = True


def _look(c: sa.Connection, query: Callable[[sa.Connection], T]) -> T:
    with _transaction(c):
        return query(c)


@contextmanager
def _transaction(c: sa.Connection) -> Iterator[None]:
    """Begin and commit; a connection that does not answer is asked nothing more."""
    with c.begin():
        try:
            yield
        except TimeoutError:
            c.invalidate()
            raise


def _status(c: sa.Connection, xact: str) -> str:
    return str(c.scalar(_STATUS, {"xact": xact}))
