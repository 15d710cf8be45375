"""Bounds: how many items, children and generations an agent may have: copies of itself end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one agent may have at once: open items, children of one item, generations of them."""

    open_items: int = 50
    children: int = 8
    depth: int = 3


DEFAULT: Final = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBounds:
    """The bounds of every agent: ``others`` is for those that have none of their own."""

    others: Bounds = DEFAULT
    of: Mapping[str, Bounds] = field(default_factory=dict)

    def for_agent(self, name: str) -> Bounds:
        """Return the bounds of one agent."""
        return self.of.get(name, self.others)
