"""Clock: the one place where the daemon reads the time, waits for it, and names the boot."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The time, and the only way to wait for it."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251  # this class is the clock that others take

    def monotonic(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        return time.monotonic()  # noqa: TID251  # this class is the clock that others take

    def boot_time(self) -> float:
        """Return seconds that run on while the machine sleeps, where the system tells them."""
        clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime(clock)

    async def sleep(self, delay_s: float) -> None:
        """Wait *delay_s* seconds of the loop's time."""
        await asyncio.sleep(delay_s)


def os_boot_id() -> str:
    """Name this boot of the machine: the same until it restarts; may be read at any time.

    Linux has an id; elsewhere the start of the system's clock stands in, to the minute.
    """
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text(encoding="ascii").strip()
    started = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return f"boot-{started // 60_000_000_000}"
