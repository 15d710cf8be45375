"""Card: what a wake begins with: the work item, and where its code is (B11.10, E10.3)."""

from __future__ import annotations

import re
from typing import Final

from upright.core.context import Place, work_card
from upright.core.work import WorkItem
from upright.store import devices
from upright.store.unit import Unit

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def render(u: Unit, item: WorkItem) -> str:
    """Render the card of an item; without a device it says so."""
    binding = devices.place_of(u.c, item.code.urls) if item.code else None
    if binding is None:
        return work_card(item, None, hint="no device has this repository yet; run will say so")
    return work_card(item, _place(item, binding))


def _place(item: WorkItem, binding: devices.Binding) -> Place:
    """Propose a worktree beside the workspace, named after the item, and the branch to push."""
    short = item.id.partition("_")[2][-8:]
    branch = item.code.branch if item.code else ""
    return Place(
        device=binding.name,
        workspace=binding.path,
        worktree=f"{binding.path}.worktrees/{short}",
        branch=branch or f"upright/{_UNSAFE.sub('-', short)}",
    )
