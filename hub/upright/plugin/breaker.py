"""Breaker: a source that fails again and again is tried less often, one that breaks hardly ever."""

from __future__ import annotations

from dataclasses import dataclass, field

from upright.core.connector import Broke, ConnectorEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """After ``breaks`` breaks in a row a source rests for ``rest_s``.

    What has run for ``steady_s`` has recovered: the count begins anew. A start that works is no
    recovery, for what breaks a connector may come right after it, each time.
    """

    breaks: int = 5
    rest_s: float = 900.0
    steady_s: float = 60.0


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Counts a source's failures: ``tries`` of any kind, ``broke`` by the connector's own fault."""

    limits: BreakerLimits
    tries: int = field(default=0, init=False)
    broke: int = field(default=0, init=False)

    def failed(self, event: ConnectorEvent, *, ran_s: float) -> None:
        """Count a failure after it had run for so long."""
        if ran_s >= self.limits.steady_s:
            self.reset()
        self.tries += 1
        self.broke = self.broke + 1 if isinstance(event, Broke) else 0

    def reset(self) -> None:
        """Begin anew: it has recovered, or a person says so."""
        self.tries = self.broke = 0

    @property
    def rest_s(self) -> float | None:
        """For how long it rests at the least; None while the breaker is closed."""
        return self.limits.rest_s if self.broke >= self.limits.breaks else None

    def said(self, reason: str) -> str:
        """Return a reason, with what the breaker has to say."""
        if self.rest_s is None:
            return reason
        minutes = f"{self.limits.rest_s / 60:g} min"
        return f"{reason} (broke {self.broke} times in a row; rests for {minutes})"
