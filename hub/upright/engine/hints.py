"""Hints: one service's wake-up; many hints are one, and none is needed to be right."""

from __future__ import annotations

import asyncio


class Hint:
    """Given by whoever has committed something; waited for with a bound."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def give(self) -> None:
        """Wake the service."""
        self._event.set()

    async def wait(self, timeout_s: float) -> None:
        """Wait for a hint or the time; what was given since the last wait counts."""
        try:
            async with asyncio.timeout(max(timeout_s, 0)):
                await self._event.wait()
        except TimeoutError:
            return
        finally:
            self._event.clear()
