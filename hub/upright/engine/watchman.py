"""Watchman: the oracle in the running hub: what sleeps for ever is mended, or an alarm raised."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.units import Units
from upright.store import alarm
from upright.store.oracle import Stalled

log = logging.getLogger(__name__)

BACK_MS: Final = 5_000
"""The wall clock went back when it lags the other one by more than this in one interval."""


class Watchman:
    """Looks each ``every_s``; a whole round takes one look for each page of live items."""

    def __init__(
        self, units: Units, woken: Callable[[Collection[SessionId]], None], *, every_s: float
    ) -> None:
        self._units = units
        self._woken = woken
        self._every_s = every_s
        self._after = ""
        self._seen: dict[str, Stalled] = {}
        self._round: dict[str, Stalled] = {}

    @property
    def stalled(self) -> tuple[Stalled, ...]:
        """What is stalled as far as is known: by the last whole round, and by this one."""
        return tuple({**self._seen, **self._round}.values())

    async def run(self) -> None:
        """Look, for ever."""
        clock = self._units.clock
        while True:
            wall_ms, steady_s = now_ms(clock), clock.monotonic()
            await clock.sleep(self._every_s)
            ran_ms = 1000 * (clock.monotonic() - steady_s)
            if now_ms(clock) - wall_ms < ran_ms - BACK_MS:
                pulled = await self._units.write(alarm.pull)
                log.warning("oracle.clock_went_back", extra={"pulled": pulled})
            await self.look()

    async def look(self) -> None:
        """Look once: mend what can be mended, and say what can't."""
        seen, after = frozenset(self._seen), self._after
        found = await self._units.read(lambda c: alarm.peek(c, after))
        if found.stalled or found.mended:  # a healthy hub writes nothing, and disturbs nobody
            found = await self._units.write(lambda u: alarm.look(u, after, seen))
        for session in found.mended:
            log.error("oracle.mended", extra={"session": session})
        for one in found.stalled:
            extra = {"work": one.id, "state": one.state, "missing": one.missing}
            log.error("oracle.stalled", extra=extra)
        self._round |= {one.id: one for one in found.stalled}
        self._after = found.last
        if not found.last:
            self._seen, self._round = self._round, {}
        self._woken(found.mended)
