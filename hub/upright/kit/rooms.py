"""Rooms: which of them are heard, what is heard in each, and to whom a message speaks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from upright.api import Address

EVERY: Final = "*"
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRules:
    """``allowed``: the rooms that are heard, by id or alias; none: all that we are in.

    ``senders``: whose words are heard, by id; none: everybody's.

    ``mention_only``: rooms (``*``: all) where only what speaks to us is heard, and what is said in
    threads of which we are a part. Direct talk is always heard.
    """

    allowed: frozenset[str] = frozenset()
    mention_only: frozenset[str] = frozenset()
    senders: frozenset[str] = frozenset()

    def hears_from(self, sender: str) -> bool:
        """Tell whether somebody is heard."""
        return not self.senders or sender in self.senders

    def hears(self, *names: str) -> bool:
        """Tell whether a room is heard at all, by any of its names."""
        return not self.allowed or not self.allowed.isdisjoint(names)

    def only_mentions(self, *names: str) -> bool:
        """Tell whether a room is heard only where we are spoken to."""
        return not self.mention_only.isdisjoint((EVERY, *names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What is known of a message: in a direct talk, naming us, answering one of ours."""

    direct: bool = False
    mentioned: bool = False
    answers_us: bool = False

    @property
    def address(self) -> Address:
        """Say to whom it speaks."""
        if self.direct:
            return Address.DIRECT
        return Address.MENTION if self.mentioned or self.answers_us else Address.NONE


class Known(Generic[V]):
    """What was learned lately, at most so many of it; the longest unused goes first."""

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return what is known of a key."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: str, value: V) -> V:
        """Learn."""
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    async def learn(self, key: str, ask: Callable[[], Awaitable[V]]) -> V:
        """Return what is known, or ask and remember."""
        found = self.get(key)
        return self.put(key, await ask()) if found is None else found
