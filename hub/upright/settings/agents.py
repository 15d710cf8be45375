"""Agents' section, ``[agents.NAME]``: the template of a home, and an agent's bounds."""

from __future__ import annotations

from dataclasses import dataclass

from upright.core.bounds import DEFAULT, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSection:
    """``[agents.NAME]``: an agent beside the router and the developer, or bounds for one of them.

    ``template`` is used once, when there is no home of this name; empty: the name itself is the
    template's.
    """

    template: str = ""
    open_items: int = DEFAULT.open_items
    children: int = DEFAULT.children
    depth: int = DEFAULT.depth

    def __post_init__(self) -> None:
        for name in ("open_items", "children", "depth"):
            if getattr(self, name) < 1:
                problem = f"{name} must be at least 1"
                raise ValueError(problem)

    def bounds(self) -> Bounds:
        """Return the bounds as units of work use them."""
        return Bounds(open_items=self.open_items, children=self.children, depth=self.depth)
