"""Signals: in-process hints that a row may have changed; whoever wakes looks at the row."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final, Self

DRAIN: Final = "drain"
"""The key under which it is told that the hub stops: whoever waits for the world ends its wait."""


class Signals:
    """Wakes those who wait for a key; a signal that nobody waits for is lost, harmlessly."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def notify(self, key: str) -> None:
        """Wake everybody who waits for *key*."""
        for event in self._waiting.get(key, ()):
            event.set()

    def listen(self, keys: Collection[str]) -> Listening:
        """Begin to listen; look at the rows after this and before waiting."""
        return Listening(self._waiting, frozenset(keys))


class Listening:
    """A listener for some keys, from its making to the end of its ``with`` block."""

    def __init__(self, waiting: dict[str, set[asyncio.Event]], keys: frozenset[str]) -> None:
        self._waiting = waiting
        self._keys = keys
        self._event = asyncio.Event()
        for key in keys:
            waiting.setdefault(key, set()).add(self._event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for key in self._keys:
            listeners = self._waiting[key]
            listeners.discard(self._event)
            if not listeners:
                del self._waiting[key]

    def ring(self) -> None:
        """Wake this listener alone."""
        self._event.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a signal; False when the time ran out. What came since the last wait counts."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True
