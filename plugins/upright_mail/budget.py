"""Budget: how often one conversation is answered, so that two robots don't talk for ever.

A robot that hides what it is still answers at once. What comes back sooner after our own mail than
people write is answered once an hour; everybody else, as often as the settings say.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

HOUR: Final = timedelta(hours=1)
PROMPT_PER_HOUR: Final = 1
MAX_MAILS: Final = 20_000
MAX_SENT: Final = 2_000


@dataclass(slots=True)
class Budget:
    """Counts answers by conversation; what was sent before a restart is forgotten.

    A conversation is known by the ids of its mails: whoever answers names some of them.
    """

    per_hour: int
    prompt_s: float
    _of: OrderedDict[str, deque[datetime]] = field(default_factory=OrderedDict)
    _sent: OrderedDict[str, datetime] = field(default_factory=OrderedDict)

    def wait_s(self, mails: Sequence[str], now: datetime, *, prompt: bool) -> float:
        """Return how long an answer to the last of these mails must wait; 0: not at all."""
        recent = [at for at in self._answers(mails) if at > now - HOUR]
        allowed = PROMPT_PER_HOUR if prompt else self.per_hour
        if len(recent) < allowed:
            return 0.0
        return (recent[-allowed] + HOUR - now).total_seconds()

    def sent(self, mails: Sequence[str], message_id: str, now: datetime) -> None:
        """Count an answer, which is a mail of the conversation itself."""
        answers = self._answers(mails)
        answers.append(now)
        for one in (*mails, message_id):
            self._of[one] = answers
            self._of.move_to_end(one)
        self._sent[message_id] = now
        while len(self._of) > MAX_MAILS:
            self._of.popitem(last=False)
        while len(self._sent) > MAX_SENT:
            self._sent.popitem(last=False)

    def is_prompt(self, answered: Sequence[str], now: datetime) -> bool:
        """Tell whether what answers one of our mails came back too soon for a person."""
        limit = timedelta(seconds=self.prompt_s)
        times = [self._sent[one] for one in answered if one in self._sent]
        return any(now - at < limit for at in times)

    def _answers(self, mails: Sequence[str]) -> deque[datetime]:
        """Return when a conversation was answered, the newest last."""
        known = next((self._of[one] for one in reversed(mails) if one in self._of), None)
        return deque(maxlen=max(self.per_hour, PROMPT_PER_HOUR)) if known is None else known
