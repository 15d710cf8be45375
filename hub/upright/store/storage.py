"""Storage: what runs units of work and queries, whichever database is behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from upright.store.unit import Connection

T = TypeVar("T")
Time = Callable[[Connection, int], int]
"""Says a unit's time, epoch milliseconds; it is given the hub's own."""


class Storage(Protocol):
    """One database, opened for this hub. Units and queries are functions of a connection.

    A unit may be run more than once: until its commit nothing but its own rows may know of it.
    Whatever a unit or a query returns must not hold on to the connection.
    """

    @property
    def time(self) -> Time:
        """The time that units go by: the hub's, or the database's where hubs could share it."""
        ...

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit of work in a transaction; return what it returned, once that is stored.

        Raises:
            StoreUnavailableError: the store is closed, or the database can't be had.
        """
        ...

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query on one snapshot; writing is refused.

        Raises:
            StoreUnavailableError: as for :meth:`write`.
        """
        ...

    async def close(self) -> None:
        """Finish what was begun and let go; a second call does nothing."""
        ...


def hub_time(_c: Connection, at_ms: int) -> int:
    """Return the hub's own time: nobody else looks at its rows."""
    return at_ms
