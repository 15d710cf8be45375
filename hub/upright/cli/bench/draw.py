"""Draw: which kills come next: at the places that were met least, and at intake again and again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from upright.cli.bench.doom import Doom, Mark
from upright.cli.bench.stops import (
    EARLY,
    INTAKE,
    MODEL,
    RUNNING,
    SPOOL,
    Place,
    Side,
    Victim,
    is_often,
)

AT_ONCE: Final = 6  # how many places a hub may die at; it dies at the first that comes
OTHERS: Final = 2
INTAKE_ONE_IN: Final = 4
_PRESSED: Final = frozenset(INTAKE[:2])  # the load brings them all the time
_OUTSIDE: Final = frozenset({MODEL, RUNNING, *SPOOL})


class Dice:
    """Numbers that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._thrown = 0

    def below(self, limit: int) -> int:
        """Return a number from 0 on, below *limit*."""
        self._thrown += 1
        digest = hashlib.sha256(f"{self._seed}:{self._thrown}".encode()).digest()
        return int.from_bytes(digest[:8]) % limit


@dataclass(slots=True, kw_only=True)
class Tally:
    """The kills that landed."""

    wanted: int
    places: tuple[Place, ...]
    met: Counter[Place] = field(default_factory=Counter)
    inside_turn: int = 0

    def add(self, mark: Mark) -> None:
        """Count a kill."""
        self.met[mark.place] += 1
        self.inside_turn += mark.inside_turn

    @property
    def landed(self) -> int:
        """How many landed."""
        return self.met.total()

    @property
    def left(self) -> int:
        """How many are still wanted."""
        return max(self.wanted - self.landed, 0)

    @property
    def between(self) -> int:
        """How many landed between the receipt of a webhook and its answer."""
        return sum(n for place, n in self.met.items() if place.stop in INTAKE)

    def at(self, stop: str, victim: Victim) -> int:
        """Count the kills at a stop."""
        return sum(n for p, n in self.met.items() if p.stop == stop and p.victim is victim)

    def missed(self) -> list[Place]:
        """Return the places at which no kill landed."""
        return [place for place in self.places if not self.met[place]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What comes next: dooms for the hub's process, or one kill that is dealt from outside."""

    dooms: tuple[Doom, ...] = ()
    outside: Place | None = None


class Draw:
    """Chooses; a place that was met least goes first, and the dice decide among equals."""

    def __init__(self, tally: Tally, dice: Dice) -> None:
        self._tally = tally
        self._dice = dice

    def mode(self) -> Victim:
        """Choose who is killed during the next story: the side that lacks most, by its places."""
        hub = self._need(lambda place: place.victim is Victim.HUB)
        execd = self._need(lambda place: place.victim is not Victim.HUB)
        if not hub or not execd:
            return Victim.HUB if hub else Victim.EXECD
        return Victim.EXECD if self._dice.below(hub + execd) < execd else Victim.HUB

    def next(self, mode: Victim, *, is_late: bool = False) -> Drawn:
        """Draw what comes next in a story of this mode; nothing once all kills have landed.

        Late in a story, intake apart, only those places are drawn that were met least: how it ends
        is to be met, too.
        """
        if not self._tally.left:
            return Drawn()
        if mode is Victim.HUB and self._dice.below(INTAKE_ONE_IN) == 0:
            first, *_ = self._sorted(self._mine(mode, lambda stop: stop in _PRESSED))
            return Drawn(dooms=(Doom(place=first, skip=self._dice.below(4)),))
        ranked = self._sorted(self._mine(mode, lambda stop: stop not in _PRESSED))
        if ranked[0].stop in _OUTSIDE:
            return Drawn(outside=ranked[0])
        inside = [place for place in ranked if place.stop not in _OUTSIDE]
        # some that come for sure: those that lack a kill may come after another kill only
        later = [place for place in inside if place.stop not in EARLY]
        others = [later[self._dice.below(len(later))] for _ in range(0 if is_late else OTHERS)]
        chosen = dict.fromkeys((*inside[:AT_ONCE], *others))
        return Drawn(dooms=tuple(self._doom(place) for place in chosen))

    def unmet(self, mode: Victim) -> Drawn:
        """Draw those places of this mode at which no kill has landed yet."""
        if not self._tally.left:
            return Drawn()
        mine = self._mine(mode, lambda stop: stop not in _PRESSED | _OUTSIDE)
        missed = self._sorted(place for place in mine if not self._tally.met[place])
        return Drawn(dooms=tuple(Doom(place=place) for place in missed[:AT_ONCE]))

    def _mine(self, mode: Victim, wanted: Callable[[str], bool]) -> list[Place]:
        is_hub = mode is Victim.HUB
        places = self._tally.places
        return [p for p in places if (p.victim is Victim.HUB) is is_hub and wanted(p.stop)]

    def _doom(self, place: Place) -> Doom:
        fresh = not self._tally.at(place.stop, place.victim)
        skip = 0 if fresh or not is_often(place.stop) else self._dice.below(4)
        return Doom(place=place, skip=skip)

    def _sorted(self, places: Iterable[Place]) -> list[Place]:
        return sorted(places, key=self._rank)

    def _rank(self, place: Place) -> tuple[bool, int, int, int]:
        """Put the unmet first: one side of a stop may be met often before the other ever is."""
        tally = self._tally
        share = 1 if place.side is Side.DURING or place.stop in SPOOL else 2
        by_stop = tally.at(place.stop, place.victim) * 2 // share
        met = tally.met[place]
        return met > 0, by_stop, met, self._dice.below(1 << 16)

    def _need(self, mine: Callable[[Place], bool]) -> int:
        """Say how much the places of one side need a kill: all of them, and the unmet twice."""
        places = [place for place in self._tally.places if mine(place)]
        return len(places) + 3 * sum(not self._tally.met[place] for place in places)
