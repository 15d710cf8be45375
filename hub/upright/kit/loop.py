"""Loop budget: two bots that answer each other are parted before it costs a night.

A pair of bots may exchange twenty events in a minute; then nothing of it is heard for a minute.
Time is the events' own, so that what is caught up with is judged as it happened.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

MOST: Final = 20
WINDOW_S: Final = 60.0
PAUSE_S: Final = 60.0
_MOST_PAIRS: Final = 1_024


class Heard(StrEnum):
    """What becomes of an event of another bot."""

    YES = "yes"
    LAST = "last"  # the pause begins with this one: say so once
    NO = "no"


@dataclass(slots=True)
class _Pair:
    times: deque[datetime] = field(default_factory=deque)
    until: datetime | None = None


class LoopBudget:
    """The budget of one source; a pair is another bot and the room where it speaks to us."""

    def __init__(self, *, most: int = MOST, window_s: float = WINDOW_S, pause_s: float = PAUSE_S):
        self._most = most
        self._window = timedelta(seconds=window_s)
        self._pause = timedelta(seconds=pause_s)
        self._pairs: OrderedDict[tuple[str, str], _Pair] = OrderedDict()

    def hear(self, bot: str, room: str, at: datetime) -> Heard:
        """Count an event of a bot; say whether it is heard."""
        pair = self._pairs.pop((bot, room), None) or _Pair()
        self._pairs[bot, room] = pair
        while len(self._pairs) > _MOST_PAIRS:
            self._pairs.popitem(last=False)
        if pair.until is not None and at < pair.until:
            return Heard.NO
        pair.until = None
        pair.times.append(at)
        while pair.times[0] <= at - self._window:
            pair.times.popleft()
        if len(pair.times) <= self._most:
            return Heard.YES
        pair.times.clear()
        pair.until = at + self._pause
        return Heard.LAST
