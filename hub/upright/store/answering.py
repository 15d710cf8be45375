"""Answering: where people answer requests by what they type, and who follows it (B14.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from upright.core.gate import Mode, Rules
from upright.core.ids import SessionId
from upright.core.routing import Route
from upright.core.trigger import Disposition, People
from upright.store.arrivals import Draft
from upright.store.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What became of an answer, in words for people, and whom it woke."""

    reason: str
    woke: SessionId | None = None

    @property
    def route(self) -> Route:
        """Where the message goes: nowhere, it has been heard."""
        return Route(disposition=Disposition.ANSWERED, deliveries=(), reason=self.reason)


Follow: TypeAlias = Callable[[Unit, Draft, People], Followed | None]
"""Follows a message that is an answer, in the transaction that stores it; None: it is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """The sources whose service vouches for its authors, and what follows an answer there."""

    sources: frozenset[str] = frozenset()
    follow: Follow | None = None

    def followed(self, u: Unit, draft: Draft, rules: Rules, people: People) -> Followed | None:
        """Follow a new message; None: it is a trigger like any other."""
        if self.follow is None or draft.source not in self.sources:
            return None
        return None if rules.mode(draft.source) is Mode.OFF else self.follow(u, draft, people)


NOBODY: Final = Answering()
