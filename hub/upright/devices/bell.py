"""Bell: an event with one waiter; asyncio's own has a queue of waiters, and links are many."""

from __future__ import annotations

import asyncio


class Bell:
    """Rung, it lets its one waiter go on, now or later, until it is silenced."""

    __slots__ = ("_is_rung", "_waiter")

    def __init__(self) -> None:
        self._is_rung = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_rung(self) -> bool:
        """Whether it was rung, and not silenced since."""
        return self._is_rung

    def ring(self) -> None:
        """Let the waiter go on."""
        self._is_rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def silence(self) -> None:
        """Let whoever waits next wait for the next ring."""
        self._is_rung = False

    async def wait(self) -> None:
        """Wait for a ring; one waiter at a time."""
        if self._is_rung:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
