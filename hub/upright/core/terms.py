"""Terms: how long waits and effects may take, how much an agent may have; from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from upright.api import Destination, EffectClass
from upright.core.bounds import AgentBounds
from upright.core.budget import Caps
from upright.core.wait import DEADLINES_S, WaitKind

DAY_S: Final = 24 * 3600
LIVES_S: Final[Mapping[EffectClass, int]] = {
    EffectClass.REPLY: DAY_S,
    EffectClass.REACH: DAY_S,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Deadlines of waits by kind, and lives of unsent effects by class, in seconds.

    A timer's deadline is what was asked for. A class without a life of its own has a day. ``caps``
    are the budgets of the configuration; a person may set others beside them. ``bounds``
    are those of agents. ``operators`` names those whom the configuration knows as such, ``notify``
    where some of them are told what waits for them.
    """

    deadlines_s: Mapping[WaitKind, int] = field(
        default_factory=lambda: {kind: seconds for kind, (seconds, _) in DEADLINES_S.items()}
    )
    lives_s: Mapping[EffectClass, int] = field(default_factory=lambda: dict(LIVES_S))
    caps: Caps = field(default_factory=Caps)
    bounds: AgentBounds = field(default_factory=AgentBounds)
    operators: frozenset[str] = frozenset()
    notify: Mapping[str, Destination] = field(default_factory=dict)

    def life_ms(self, effect: EffectClass) -> int:
        """Return how long an unsent effect of this class is worth sending."""
        return 1000 * self.lives_s.get(effect, DAY_S)

    def wait_s(self, kind: WaitKind, asked_s: int | None) -> int:
        """Return a wait's deadline: what was asked for, else its kind's default."""
        return self.deadlines_s[kind] if asked_s is None else asked_s


DEFAULT_TERMS: Final = Terms()
