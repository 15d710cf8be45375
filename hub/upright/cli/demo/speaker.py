"""Speaker: tells people how far the demo is, each line with the time since the start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from upright.engine.ports import Clock

Say = Callable[[str], None]


@dataclass(slots=True)
class Speaker:
    """Writes progress lines, and keeps the times at which things happened (seconds)."""

    clock: Clock
    say: Say
    began: float
    times: dict[str, float] = field(default_factory=dict)

    def now_s(self) -> float:
        """Return seconds since the start."""
        return self.clock.monotonic() - self.began

    def step(self, text: str) -> None:
        """Say what happens now."""
        self.say(f"[{self.now_s():6.1f} s] {text}")

    def note(self, name: str) -> None:
        """Keep when something happened, the first time only."""
        self.times.setdefault(name, round(self.now_s(), 3))

    def check(self, name: str, *, ok: bool, detail: str = "") -> None:
        """Say whether one check from outside holds."""
        mark = "ok  " if ok else "FAIL"
        self.say(f"  {mark} {name}{f': {detail}' if detail else ''}")
