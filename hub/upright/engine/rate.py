"""Rate: how often one address may try, in a sliding window; memory is bounded."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from upright.engine.ports import Clock


@dataclass(slots=True, kw_only=True)
class Rate:
    """At most ``tries`` per ``window_s`` and key; the least recent keys are forgotten first."""

    clock: Clock
    tries: int
    window_s: float
    max_keys: int = 4096
    _seen: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def wait_s(self, key: str) -> float:
        """Return how long this key must wait before its next try; 0: it may try now."""
        times = self._seen.get(key)
        if times is None or len(times) < self.tries:
            return 0.0
        return max(0.0, times[0] + self.window_s - self.clock.monotonic())

    def count(self, key: str) -> None:
        """Note a try."""
        times = self._seen.setdefault(key, deque(maxlen=self.tries))
        times.append(self.clock.monotonic())
        self._seen.move_to_end(key)
        while len(self._seen) > self.max_keys:
            self._seen.popitem(last=False)
