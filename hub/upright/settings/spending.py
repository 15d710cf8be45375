"""Spending: ``[budgets]`` and ``[prices]``: what may be used, and what models cost (B13.1, B16)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from upright.core.budget import Caps, Key, Measure, Scope

UNITS: Final[Mapping[str, tuple[Measure, int]]] = {
    "tokens": (Measure.TOKENS, 1),
    "usd": (Measure.USD_MICROS, 1_000_000),
    "steps": (Measure.STEPS, 1),
    "seconds": (Measure.MILLIS, 1_000),
    "retries": (Measure.RETRIES, 1),
    "repeats": (Measure.REPEATS, 1),
}
"""The keys of a budget: what each measures, and how many of its units one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapSection:
    """``[budgets.SCOPE]``: how much of each may be used; 0: no bound."""

    tokens: int = 0
    usd: float = 0.0
    steps: int = 0
    seconds: int = 0
    retries: int = 0
    repeats: int = 0

    def __post_init__(self) -> None:
        for name in UNITS:
            if getattr(self, name) < 0:
                problem = f"{name} must be 0, no bound, or above"
                raise ValueError(problem)

    def amounts(self) -> dict[Measure, int]:
        """Return what is bounded, in whole units."""
        given = {name: getattr(self, name) for name in UNITS}
        return {
            measure: round(given[name] * size)
            for name, (measure, size) in UNITS.items()
            if given[name]
        }


_TURN: Final = CapSection(seconds=14_400, retries=40, repeats=60)
_ITEM: Final = CapSection(steps=2_000, retries=200, repeats=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetsSection:
    """``[budgets]``: of the hub's day, of each source, policy and agent a day, of each item, turn.

    ``sources``, ``policies`` and ``agents`` name single ones. At ``warn_percent`` people are told.
    """

    warn_percent: int = 80
    day: CapSection = field(default_factory=CapSection)
    source: CapSection = field(default_factory=CapSection)
    policy: CapSection = field(default_factory=CapSection)
    agent: CapSection = field(default_factory=CapSection)
    item: CapSection = field(default=_ITEM)
    turn: CapSection = field(default=_TURN)
    sources: Mapping[str, CapSection] = field(default_factory=dict)
    policies: Mapping[str, CapSection] = field(default_factory=dict)
    agents: Mapping[str, CapSection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.warn_percent <= 100:
            problem = "warn_percent must be between 1 and 100"
            raise ValueError(problem)

    def caps(self) -> Caps:
        """Return every cap but those of a turn."""
        named = {
            Key(scope, name): section.amounts()
            for scope, sections in (
                (Scope.SOURCE, self.sources),
                (Scope.POLICY, self.policies),
                (Scope.AGENT, self.agents),
            )
            for name, section in sections.items()
        }
        day = self.day.amounts()
        return Caps(
            each={
                Scope.SOURCE: self.source.amounts(),
                Scope.POLICY: self.policy.amounts(),
                Scope.AGENT: self.agent.amounts(),
                Scope.ITEM: self.item.amounts(),
            },
            named={**named, Key(Scope.DAY): day} if day else named,
            warn_percent=self.warn_percent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSection:
    """``[prices.MODEL]``: dollars a million tokens; ``cached`` is ``input`` when not given."""

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cached or 0.0) < 0:
            problem = "a price must not be below 0"
            raise ValueError(problem)

    def dollars(self) -> tuple[Decimal, Decimal, Decimal]:
        """Return input, cached and output, exactly as they were written."""
        cached = self.input if self.cached is None else self.cached
        return Decimal(str(self.input)), Decimal(str(cached)), Decimal(str(self.output))
