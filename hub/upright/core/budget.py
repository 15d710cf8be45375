"""Budgets: how much each scope may use, when people are warned, when work stops (B13.1, B16.2).

A scope's counts grow with each row of the ledger. Reaching a cap stops work at its next safe
point: no call begins, and what was begun is finished and counted. So a cap may be overshot, by the
calls that were under way when it was reached, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Final

DAY_MS: Final = 24 * 3600 * 1000
WARN_PERCENT: Final = 80


class Scope(StrEnum):
    """What a budget is for: the hub's day; a source's, a policy's, an agent's day; an item."""

    DAY = "day"
    SOURCE = "source"
    POLICY = "policy"
    AGENT = "agent"
    ITEM = "item"
    TURN = "turn"


class Measure(StrEnum):
    """What is counted, in whole units: tokens, micro-dollars, calls, milliseconds."""

    TOKENS = "tokens"  # in and out; cached ones, too
    USD_MICROS = "usd_micros"
    STEPS = "steps"  # model calls
    MILLIS = "millis"  # of model calls and jobs; of a turn: since it began
    RETRIES = "retries"  # requests to a model that gave nothing
    REPEATS = "repeats"  # tool calls that were made before, word for word


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Counts. ``unpriced``: calls whose price nobody knows; no cap in money counts them."""

    tokens: int = 0
    usd_micros: int = 0
    steps: int = 0
    millis: int = 0
    retries: int = 0
    repeats: int = 0
    unpriced: int = 0

    def of(self, measure: Measure) -> int:
        """Return one count."""
        count: int = getattr(self, measure.value)
        return count

    def plus(self, other: Used) -> Used:
        """Add up."""
        names = [each.name for each in fields(self)]
        return Used(**{name: getattr(self, name) + getattr(other, name) for name in names})


NOTHING: Final = Used()
Amounts = Mapping[Measure, int]
"""A cap for each measure; 0, or none: no bound."""
NO_AMOUNTS: Final[Amounts] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A scope and whose it is: ``Key(Scope.SOURCE, "github")``; no name for the hub's day."""

    scope: Scope
    name: str = ""

    @property
    def ref(self) -> str:
        """What work waits for when this is used up."""
        return f"budget:{self.scope.value}:{self.name}"

    def period(self, now_ms: int) -> int:
        """Return the day since 1970 (UTC) that is counted; 0 where it is the whole life."""
        return 0 if self.scope is Scope.ITEM else now_ms // DAY_MS

    def renews_ms(self, now_ms: int) -> int | None:
        """Return when counting begins anew, the next midnight (UTC); None: never."""
        return None if self.scope is Scope.ITEM else (now_ms // DAY_MS + 1) * DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Every cap: ``each`` of a scope, and ``named`` ones."""

    each: Mapping[Scope, Amounts] = field(default_factory=dict)
    named: Mapping[Key, Amounts] = field(default_factory=dict)
    warn_percent: int = WARN_PERCENT

    def of(self, key: Key) -> Amounts:
        """Return the caps of one: what is named goes before what is for each of its scope."""
        merged = {**self.each.get(key.scope, NO_AMOUNTS), **self.named.get(key, NO_AMOUNTS)}
        return {measure: amount for measure, amount in merged.items() if amount > 0}

    def under(self, each: Mapping[Scope, Amounts], named: Mapping[Key, Amounts]) -> Caps:
        """Return these with what people have set since; a 0 of theirs takes a cap away."""
        return Caps(
            each={one: {**self.each.get(one, {}), **each.get(one, {})} for one in Scope},
            named={
                key: {**self.named.get(key, {}), **named.get(key, {})}
                for key in {*self.named, *named}
            },
            warn_percent=self.warn_percent,
        )


class Level(StrEnum):
    """How far a scope is."""

    FINE = "fine"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What one scope has used of its caps; ``extra``: granted once more so often."""

    key: Key
    used: Used = NOTHING
    extra: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The measure of a scope that is closest to its cap."""

    key: Key
    level: Level
    measure: Measure
    used: int
    cap: int

    @property
    def sentence(self) -> str:
        """Say it to people."""
        whose = f"{self.key.scope.value} {self.key.name}".strip()
        said = f"{said_of(self.measure, self.used)} of {said_of(self.measure, self.cap)}"
        return f"the budget of the {whose}: {said} used"


def judge(one: Standing, caps: Caps, *, coming: Used = NOTHING) -> Finding | None:
    """Say how far a scope is with what is *coming*; None where it has no cap.

    Of several measures it is the one that has used the greatest part of its cap.
    """
    amounts = caps.of(one.key)
    if not amounts:
        return None
    counted = one.used.plus(coming)
    full = {measure: amount * (1 + one.extra) for measure, amount in amounts.items()}
    worst = max(full, key=lambda measure: counted.of(measure) / full[measure])
    used, cap = counted.of(worst), full[worst]
    level = Level.FINE
    if used >= cap:
        level = Level.STOP
    elif 100 * used >= caps.warn_percent * cap:
        level = Level.WARN
    return Finding(key=one.key, level=level, measure=worst, used=used, cap=cap)


def stopping(
    standings: Iterable[Standing], caps: Caps, *, coming: Used = NOTHING
) -> Finding | None:
    """Return the first scope that is used up, the widest first; None: the call may begin."""
    order = list(Scope)
    for one in sorted(standings, key=lambda standing: order.index(standing.key.scope)):
        found = judge(one, caps, coming=coming)
        if found is not None and found.level is Level.STOP:
            return found
    return None


def reached(used: Used, amounts: Amounts) -> str:
    """Say which cap of a turn is reached; empty: none."""
    for measure, amount in amounts.items():
        if 0 < amount <= used.of(measure):
            return f"{said_of(measure, used.of(measure))} of {said_of(measure, amount)} in one turn"
    return ""


def said_of(measure: Measure, amount: int) -> str:
    """Return an amount in the units that people use."""
    match measure:
        case Measure.USD_MICROS:
            return f"${amount / 1e6:,.2f}"
        case Measure.MILLIS:
            return f"{amount / 1000:,.0f} s"
        case _:
            return f"{amount:,} {measure.value}"
