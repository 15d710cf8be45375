"""Limits: how much a client may do in a minute and in an hour before it is told to be silent.

Source: docs.github.com, "Rate limits for the REST API": the secondary limits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

POINTS_A_MINUTE: Final = 900
POINTS_READING: Final = 1
POINTS_WRITING: Final = 5
CREATIONS_A_MINUTE: Final = 80  # of what people see: comments, reviews
CREATIONS_AN_HOUR: Final = 500
CALLS_AT_ONCE: Final = 100
MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0


@dataclass(slots=True)
class Limits:
    """The secondary limits of one token; what is refused costs nothing."""

    points: deque[tuple[float, int]] = field(default_factory=deque)
    creations: deque[float] = field(default_factory=deque)
    under_way: int = 0

    def spend(self, method: str, at: datetime) -> bool:
        """Count a call; False when it is one too many."""
        now = at.timestamp()
        while self.points and now - self.points[0][0] >= MINUTE_S:
            self.points.popleft()
        cost = POINTS_READING if method in {"GET", "HEAD", "OPTIONS"} else POINTS_WRITING
        spent = sum(points for _, points in self.points)
        if spent + cost > POINTS_A_MINUTE or self.under_way > CALLS_AT_ONCE:
            return False
        self.points.append((now, cost))
        return True

    def create(self, at: datetime) -> bool:
        """Count something that people will see; False when it is one too many."""
        now = at.timestamp()
        while self.creations and now - self.creations[0] >= HOUR_S:
            self.creations.popleft()
        last_minute = sum(now - one < MINUTE_S for one in self.creations)
        if last_minute >= CREATIONS_A_MINUTE or len(self.creations) >= CREATIONS_AN_HOUR:
            return False
        self.creations.append(now)
        return True
