"""Backlog: how much waits, how fast it is read, and when it is worth sending more (B2.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

LEAST_S: Final = 1.0
MOST_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``waiting``: counted at ``at_s``, a monotonic time, plus what was ``added`` since.

    ``read_per_s`` is how fast it is read, None before the second count.
    """

    waiting: int = 0
    added: int = 0
    at_s: float | None = None
    read_per_s: float | None = None


def added(before: Measured, triggers: int) -> Measured:
    """Count what came in since."""
    return replace(before, waiting=before.waiting + triggers, added=before.added + triggers)


def measured(before: Measured, waiting: int, at_s: float) -> Measured:
    """Take a new count; what left since the last one was read."""
    rate = None
    if before.at_s is not None and at_s > before.at_s:
        rate = max(before.waiting - waiting, 0) / (at_s - before.at_s)
    return Measured(waiting=waiting, at_s=at_s, read_per_s=rate)


def retry_after_s(found: Measured, most: int) -> float:
    """Return when there will be room at the present pace: a second at the least, a minute at most.

    While nothing is read nobody knows, and a minute is said.
    """
    if not found.read_per_s:
        return MOST_S
    over = found.waiting - most + 1
    return min(max(over / found.read_per_s, LEAST_S), MOST_S)
