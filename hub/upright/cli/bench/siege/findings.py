"""Findings: what is wrong after a siege, each in a sentence, and what was counted on the way."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Findings:
    """``whole`` is how often the database was checked whole; ``broken`` what it was not.

    ``inside_turn`` and ``sending``: what was under way when it was checked; ``cut``: backends of
    PostgreSQL's that were ended.

    ``unknown`` effects are listed as such by the hub, which is honest and no finding.
    """

    acknowledged: int = 0
    effects: int = 0
    unknown: int = 0
    items: int = 0
    whole: int = 0
    inside_turn: int = 0
    sending: int = 0
    cut: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        """Return every sentence."""
        return [*self.lost, *self.doubled, *self.stuck, *self.broken]
