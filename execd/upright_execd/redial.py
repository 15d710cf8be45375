"""Redial: when to try again, by how the last try ended; for ever, but never in a storm (E2.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from upright_wire.frames import CloseCode

Uniform = Callable[[float, float], float]  # a random number between the two


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """The times of a link, in seconds; tests scale them down.

    ``steady_s``: a link that lived so long starts the count of tries anew.
    """

    open_s: float = 10.0
    handshake_s: float = 10.0
    ping_s: float = 15.0
    dead_s: float = 40.0
    close_s: float = 1.0
    first_redial_s: float = 5.0
    most_redial_s: float = 60.0
    not_approved_s: float = 30.0
    steady_s: float = 40.0
    look_s: float = 2.0  # how often a wait looks whether the machine has slept


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """How a link, or the try to get one, ended; for people: ``reason``.

    ``code`` is the hub's close code; ``slept``: the machine was asleep in between.
    """

    reason: str
    code: int | None = None
    lived_s: float = 0.0
    retry_after_s: float | None = None
    slept: bool = False


@dataclass(slots=True, kw_only=True)
class Redial:
    """Counts the tries and says how long to wait before the next."""

    intervals: Intervals
    uniform: Uniform
    tries: int = 0

    def wait_s(self, end: LinkEnd) -> float | None:
        """Return the wait before the next try; None: there is to be none, we are revoked."""
        if end.lived_s >= self.intervals.steady_s:
            self.tries = 0
        self.tries += 1
        most = self._most_s()
        match end.code:
            case CloseCode.REVOKED:
                return None
            case CloseCode.NOT_APPROVED:
                least = self.intervals.not_approved_s
                return self.uniform(least, 2 * least)
            case CloseCode.SLOW_DOWN:
                least = end.retry_after_s or self.intervals.most_redial_s
                return least + self.uniform(0, self.intervals.first_redial_s)
            case _:
                return 0.0 if end.slept else self.uniform(0, most)

    def _most_s(self) -> float:
        doubled = self.intervals.first_redial_s * (1 << min(self.tries - 1, 16))
        return min(doubled, self.intervals.most_redial_s)
