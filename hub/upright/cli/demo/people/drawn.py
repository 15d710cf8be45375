"""Drawn: what a seed decides of the second scene: who writes, about what, when, and who asks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

T = TypeVar("T")
OWN: Final = "team@hub.example.org"
DOMAIN: Final = "hub.example.org"
_NAMES: Final = ("Ines", "Jon", "Mara", "Noor", "Olaf", "Petra", "Ravi", "Suki")
_FROM: Final = ("Kerberos Ltd", "North Pier", "Blue Harbor", "Stone Mill")
_ABOUT: Final = ("Review of the contract", "Planning for spring", "Kick-off", "Price list", "Audit")
_TAKEN_BY: Final = ("Dentist", "School play", "Rehearsal", "Moving house", "Interview")
_ASKED: Final = (
    "what became of the red tests on #{number}?",
    "is the CI of {branch} green again, and what was it?",
    "who fixed the failing build of pull request #{number}, and how?",
    "did anybody look at the red CI on {branch}?",
)


class Dice:
    """Draws from a seed: the same seed, the same draws, on every machine."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def between(self, least: int, most: int) -> int:
        """Draw a number, both ends among them."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}:{self._drawn}".encode()).digest()
        return least + int.from_bytes(digest[:8], "big") % (most - least + 1)

    def choice(self, things: Sequence[T]) -> T:
        """Draw one of several."""
        return things[self.between(0, len(things) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Something at a time; instants are aware, UTC."""

    uid: str
    title: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The second scene as a seed draws it. ``asks_directly``: in a direct message."""

    inviter: str
    inviter_name: str
    invited: Meeting
    taken: Meeting
    user: str
    user_name: str
    question: str
    asks_directly: bool

    @property
    def conflict(self) -> bool:
        """Whether the invitation is for a time that is taken."""
        return self.taken.since < self.invited.until and self.invited.since < self.taken.until


def cast(seed: int, today: datetime, *, free: bool) -> Cast:
    """Draw a scene; the same seed on the same day draws the same. *free*: no conflict in it."""
    dice = Dice(seed)
    name = dice.choice(_NAMES)
    asker = dice.choice([each for each in _NAMES if each != name])
    where = dice.choice(_FROM).lower().replace(" ", "-")
    day = today.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = day + timedelta(days=dice.between(3, 39), minutes=15 * dice.between(28, 67))
    taken_from = begin + timedelta(minutes=15 * dice.between(-2, 2))
    if free:
        taken_from = begin + timedelta(hours=4)
    return Cast(
        inviter=f"{name.lower()}@{where}.example",
        inviter_name=f"{name} of {where}",
        invited=_meeting(dice, begin, f"{dice.choice(_ABOUT)} {dice.between(2, 98)}"),
        taken=_meeting(dice, taken_from, dice.choice(_TAKEN_BY)),
        user=f"U0{dice.between(0, 10**8 - 1):08d}",
        user_name=asker.lower(),
        question=dice.choice(_ASKED),
        asks_directly=dice.choice((False, True)),
    )


def _meeting(dice: Dice, begin: datetime, title: str) -> Meeting:
    length = timedelta(minutes=15 * dice.between(3, 8))
    uid = f"{dice.between(0, 16**12 - 1):012x}@example.org"
    return Meeting(uid=uid, title=title, since=begin, until=begin + length)
