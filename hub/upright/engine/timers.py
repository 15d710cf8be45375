"""Timers: fires waits and requests that are due; all times are rows, so nothing is lost (B11.7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.hints import Hint
from upright.engine.units import Units
from upright.store import deadlines

SOON_S: Final = 0.05
"""How long at the least until the next look: the database's clock may be behind this one."""

log = logging.getLogger(__name__)


class Timers:
    """One loop that sleeps until the next deadline, looks at least each ``sweep_s``."""

    def __init__(
        self, units: Units, woken: Callable[[Collection[SessionId]], None], *, sweep_s: float
    ) -> None:
        self._units = units
        self._woken = woken
        self._sweep_s = sweep_s
        self._hint = Hint()

    def hint(self) -> None:
        """Say that there may be an earlier deadline now."""
        self._hint.give()

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            next_ms = await self._units.read(deadlines.next_ms)
            if next_ms is not None and next_ms <= now_ms(self._units.clock):
                await self._fire()
                next_ms = await self._units.read(deadlines.next_ms)
            await self._hint.wait(self._pause_s(next_ms))

    async def _fire(self) -> None:
        woken = await self._units.write(deadlines.fire_due)
        if woken:
            log.info("timers.fired", extra={"sessions": woken})
            self._woken(woken)

    def _pause_s(self, next_ms: int | None) -> float:
        if next_ms is None:
            return self._sweep_s
        wait_s = (next_ms - now_ms(self._units.clock)) / 1000
        return min(max(wait_s, SOON_S), self._sweep_s)
