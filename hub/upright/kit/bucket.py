"""Buckets: how long to wait before the next message to one target, in the order of asking."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

_MOST_TARGETS: Final = 4_096


class Buckets:
    """Token buckets of one source, one for each target, so that a busy room delays no other.

    A token that is not there yet is promised: the next one who asks waits behind it.
    """

    def __init__(self, now: Callable[[], datetime], *, per_s: float, burst: float) -> None:
        self._now = now
        self._each_s = 1.0 / per_s
        self._burst = burst
        self._full_at: OrderedDict[str, datetime] = OrderedDict()

    def take(self, target: str) -> float:
        """Take a token; return for how many seconds it is not there yet, 0 when it is."""
        now = self._now()
        full_at = max(self._full_at.pop(target, now), now) + timedelta(seconds=self._each_s)
        self._full_at[target] = full_at
        self._forget(now)
        room_s = self._each_s * self._burst
        return max(0.0, (full_at - now).total_seconds() - room_s)

    def give_back(self, target: str) -> None:
        """Give back a token that was not used."""
        if target in self._full_at:
            self._full_at[target] -= timedelta(seconds=self._each_s)

    def _forget(self, now: datetime) -> None:
        """Leave out the longest unused: a bucket that is full is no different from none."""
        while len(self._full_at) > _MOST_TARGETS:
            target, full_at = next(iter(self._full_at.items()))
            if full_at > now and len(self._full_at) <= 2 * _MOST_TARGETS:
                return
            del self._full_at[target]
