"""Units: how a service runs a unit of work: the store, the time and the ids in one hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from upright.engine.clock import now_ms
from upright.engine.ports import Clock, IdSource
from upright.store.database import Store
from upright.store.unit import Unit

T = TypeVar("T")


class Units:
    """Writes and reads with the clock and the ids filled in."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self.clock = clock
        self._ids = ids

    async def write(self, unit: Callable[[Unit], T]) -> T:
        """Run *unit* in one transaction; its time is that of the call.

        Raises:
            StoreUnavailableError: nothing was stored.
        """
        at = now_ms(self.clock)
        return await self._store.write(lambda c: unit(Unit(c, at, self._ids.new)))

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on a snapshot."""
        return await self._store.read(query)
