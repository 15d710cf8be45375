"""Bell: says to every waiting stream that something was committed; lost rings do no harm."""

from __future__ import annotations

import asyncio


class Bell:
    """Ring it after a commit, on the event loop. A waiter that misses a ring polls."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def ring(self) -> None:
        """Wake everybody who waits now."""
        self._next.set()
        self._next = asyncio.Event()

    def ticket(self) -> asyncio.Event:
        """Take this before looking: it is set by the first ring after this call."""
        return self._next


async def rung(ticket: asyncio.Event, timeout_s: float) -> bool:
    """Wait for a ring after the ticket was taken; False when none came in time."""
    try:
        async with asyncio.timeout(timeout_s):
            await ticket.wait()
    except TimeoutError:
        return False
    return True
