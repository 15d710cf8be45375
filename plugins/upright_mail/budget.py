"""Budget: how often one thread is answered, so that two robots don't talk for ever.

A robot that hides what it is still answers at once. What comes back sooner after our own mail than
people write is answered once an hour; everybody else, as often as the settings say.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

HOUR: Final = timedelta(hours=1)
PROMPT_PER_HOUR: Final = 1
MAX_THREADS: Final = 2000
MAX_SENT: Final = 2000


@dataclass(slots=True)
class Budget:
    """Counts answers by thread; what was sent before a restart is forgotten."""

    per_hour: int
    prompt_s: float
    _answers: OrderedDict[str, deque[datetime]] = field(default_factory=OrderedDict)
    _sent: OrderedDict[str, datetime] = field(default_factory=OrderedDict)

    def wait_s(self, thread: str, now: datetime, *, prompt: bool) -> float:
        """Return how long an answer must wait; 0: none."""
        recent = [at for at in self._answers.get(thread, ()) if at > now - HOUR]
        allowed = PROMPT_PER_HOUR if prompt else self.per_hour
        if len(recent) < allowed:
            return 0.0
        return (recent[-allowed] + HOUR - now).total_seconds()

    def sent(self, thread: str, message_id: str, now: datetime) -> None:
        """Count an answer."""
        kept = self._answers.setdefault(thread, deque(maxlen=max(self.per_hour, PROMPT_PER_HOUR)))
        kept.append(now)
        self._answers.move_to_end(thread)
        self._sent[message_id] = now
        while len(self._answers) > MAX_THREADS:
            self._answers.popitem(last=False)
        while len(self._sent) > MAX_SENT:
            self._sent.popitem(last=False)

    def is_prompt(self, answered: tuple[str, ...], now: datetime) -> bool:
        """Tell whether what answers one of our mails came back too soon for a person."""
        limit = timedelta(seconds=self.prompt_s)
        times = [self._sent[one] for one in answered if one in self._sent]
        return any(now - at < limit for at in times)
