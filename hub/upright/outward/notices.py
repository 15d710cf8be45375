"""Notices: looks whether somebody is to be told in chat what waits for them (B14.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from upright.core.terms import Terms
from upright.engine.clock import now_ms
from upright.engine.hints import Hint
from upright.engine.units import Units
from upright.store import notices

log = logging.getLogger(__name__)


class Notices:
    """One loop; it reads each ``sweep_s``, writes when there is something, and hints the sender.

    With nobody to be told it only waits.
    """

    def __init__(
        self, units: Units, terms: Terms, send: Callable[[], None], *, sweep_s: float
    ) -> None:
        self._units = units
        self._terms = terms
        self._send = send
        self._sweep_s = sweep_s
        self._hint = Hint()

    async def run(self) -> None:
        """Tell what is to be told, for ever."""
        while True:
            if self._terms.notify:
                await self.look()
            await self._hint.wait(self._sweep_s)

    async def look(self) -> None:
        """Look once."""
        at = now_ms(self._units.clock)
        if await self._units.read(lambda c: notices.is_due(c, self._terms, at)):
            told = await self._units.write(notices.tell)
            log.info("notices.told", extra={"count": told})
            self._send()
