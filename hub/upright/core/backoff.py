"""Backoff with full jitter: how long to wait before trying again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_ASKED_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Bounds of a backoff: the first ceiling, the last one, and the number of tries."""

    base_s: float = 1.0
    cap_s: float = 300.0
    max_tries: int = 8

    def delay_s(self, tries: int, *, roll: float, at_least_s: float | None = None) -> float:
        """Return the wait after *tries* failures; *roll* is uniform in [0, 1).

        Full jitter: uniform between 0 and ``base * 2**(tries-1)``, capped; never below what the
        other side asked for, and that counts up to a day.
        """
        exponent = min(max(tries - 1, 0), 30)
        ceiling = min(self.cap_s, self.base_s * 2.0**exponent)
        return max(ceiling * roll, min(at_least_s or 0.0, MAX_ASKED_S))

    def exhausted(self, tries: int) -> bool:
        """Say whether no further try is due."""
        return tries >= self.max_tries
