"""Clock and ids of a running hub: the system's time, and ids that sort by it."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import UTC, datetime
from typing import Final

from upright.core.ids import PREFIXES
from upright.engine.ports import Clock

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
_PAIRS: Final = tuple(one + two for one in _ALPHABET for two in _ALPHABET)
_SHIFTS: Final = range(120, -1, -10)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251  # this is the Clock that everybody else takes

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()  # noqa: TID251  # this is the Clock that everybody else takes

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        await asyncio.sleep(delay_s)


def now_ms(clock: Clock) -> int:
    """Return the wall clock as epoch milliseconds."""
    return int(clock.now().timestamp() * 1000)


class SortableIds:
    """Ids of 26 letters: 10 of milliseconds, 16 of randomness (80 bits)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new(self, kind: str) -> str:
        """Return ``<prefix>_<26 letters>``; KeyError for a kind that is not listed."""
        number = (now_ms(self._clock) << 80) | secrets.randbits(80)
        pairs = [_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS]
        return f"{PREFIXES[kind]}_{''.join(pairs)}"
