"""Units: how a service runs a unit of work: the store, the time and the ids in one hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from upright.core.terms import DEFAULT_TERMS, Terms
from upright.engine.clock import now_ms
from upright.engine.ports import Clock, IdSource
from upright.store import acting, audit_trail
from upright.store.storage import Storage
from upright.store.unit import Unit

T = TypeVar("T")


class Units:
    """Writes and reads with the clock and the ids filled in; ``committed`` follows each write."""

    def __init__(
        self,
        store: Storage,
        clock: Clock,
        ids: IdSource,
        *,
        committed: Callable[[], None],
        terms: Terms = DEFAULT_TERMS,
    ) -> None:
        self._terms = terms
        self._store = store
        self.clock = clock
        self._ids = ids
        self._committed = committed

    async def write(self, unit: Callable[[Unit], T]) -> T:
        """Run *unit* in one transaction; its time is the call's, or the database's own.

        What is done for a person is in the audit trail with it: the first unit of a deed says so.

        Raises:
            StoreUnavailableError: nothing was stored.
        """
        at, store, deed, by = now_ms(self.clock), self._store, acting.deed(), acting.by()

        def whole(c: Connection) -> T:
            u = Unit(c, store.time(c, at), self._ids.new, self._terms, by)
            done = unit(u)
            if deed is not None and not deed.kept:
                audit_trail.add(u, deed)
            return done

        done = await store.write(whole)
        if deed is not None:
            deed.kept = True
        self._committed()
        return done

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot."""
        return await self._store.read(query)
