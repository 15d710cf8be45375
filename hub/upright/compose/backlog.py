"""Backlog: how much waits unread, measured seldom; over its bound, sources must wait (B2.6)."""

from __future__ import annotations

import asyncio
from typing import Final

from upright.core import backlog as core
from upright.engine.ports import Clock
from upright.engine.units import Units
from upright.store import inbox
from upright.web.parts import BusyError

EVERY_S: Final = 0.25


class Backlog:
    """The count of unread triggers of sessions that are to run; at most ``EVERY_S`` old."""

    def __init__(self, units: Units, clock: Clock, *, most: int) -> None:
        self._units = units
        self._clock = clock
        self._most = most
        self._measured = core.Measured()
        self._lock = asyncio.Lock()

    def added(self, triggers: int) -> None:
        """Count what was accepted since the last measurement."""
        self._measured = core.added(self._measured, triggers)

    async def require_room(self) -> None:
        """Refuse to take anything in while too much waits.

        Raises:
            BusyError: too much does; it says when to come again.
            StoreUnavailableError: it can't be measured.
        """
        measured = await self._look()
        if measured.waiting >= self._most:
            said = f"{measured.waiting} triggers wait to be read"
            raise BusyError(said, retry_after_s=core.retry_after_s(measured, self._most))

    async def room(self) -> None:
        """Wait until something can be taken in: a connector's own stream loses nothing."""
        while (await self._look()).waiting >= self._most:
            await self._clock.sleep(EVERY_S)

    async def gauges(self) -> dict[str, float]:
        """Return the sample for Prometheus."""
        return {"upright_backlog": float((await self._look()).waiting)}

    async def _look(self) -> core.Measured:
        async with self._lock:
            now_s = self._clock.monotonic()
            if self._measured.at_s is None or now_s - self._measured.at_s >= EVERY_S:
                waiting = await self._units.read(inbox.backlog)
                self._measured = core.measured(self._measured, waiting, now_s)
        return self._measured
