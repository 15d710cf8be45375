"""Card: what a wake begins with: the work item, and where its code is (B11.10, E10.3)."""

from __future__ import annotations

from upright.core.context import Place, work_card
from upright.core.work import WorkItem
from upright.store import devices, work
from upright.store.unit import Unit


def render(u: Unit, item: WorkItem) -> str:
    """Render the card of an item; without a device it says so."""
    binding = devices.place_of(u.c, item.code.urls) if item.code else None
    if binding is None:
        return work_card(item, None, hint="no device has this repository yet; run will say so")
    return work_card(item, _place(item, binding))


def _place(item: WorkItem, binding: devices.Binding) -> Place:
    """Propose a worktree beside the workspace, named after the item, and the branch to push.

    Only a pull request's own branch is pushed to; for anything else (a red default branch, a
    fork's) the item has a branch of its own.
    """
    own = work.own_branch(item.id)
    code = item.code
    is_ours = code is not None and code.number is not None and not code.fork
    branch = code.branch if code is not None and is_ours else ""
    return Place(
        device=binding.name,
        workspace=binding.path,
        worktree=f"{binding.path}.worktrees/{own.partition('/')[2]}",
        branch=branch or own,
    )
