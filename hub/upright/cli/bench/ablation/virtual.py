"""Virtual time: a loop whose clock leaps to the next timer as soon as nothing else is to be done.

Hours pass in seconds, and the same run goes the same way each time. Nothing may be waited for that
the loop doesn't know of: no thread, no socket.
"""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 6, 1, 8, 0, tzinfo=UTC)


class StandstillError(Exception):
    """Nothing is to be done, and no timer runs: this would never end."""


class _Leaping(selectors.DefaultSelector):
    """Never waits: it leaps over the time that it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            raise StandstillError
        self.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        """Return the virtual time, seconds."""
        return self._leaping.now_s


class LoopClock:
    """The loop's own time, whether virtual or real; the wall clock begins at ``START``."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC."""
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        await asyncio.sleep(delay_s)
