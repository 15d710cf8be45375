"""Card: what a wake begins with: the work item, and where its code is (B11.10, E10.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from upright.core.context import Place, Progress, work_card
from upright.core.trigger import StoredTrigger
from upright.core.wait import WaitState
from upright.core.work import WorkItem
from upright.store import jobs, outbox, placing, relations, succession, waits, work
from upright.store.unit import Unit

SHOWN: Final = 10
"""So many of the newest facts of each kind stand on the card; `read` has the rest."""


def render(u: Unit, item: WorkItem, woken_by: Sequence[StoredTrigger]) -> str:
    """Render the card of an item; without a device it says so."""
    binding = placing.find(u.c, item)
    made = _progress(u, item, woken_by)
    before = succession.follows(u.c, item.id)
    follows = {"work": before.work, "read": before.session} if before else {}
    if isinstance(binding, placing.Absent):
        hint = "no device has this repository yet; run will say so"
        return work_card(item, None, made, hint=hint, follows=follows)
    return work_card(item, place(item, binding), made, follows=follows)


def _progress(u: Unit, item: WorkItem, woken_by: Sequence[StoredTrigger]) -> Progress:
    past = [one for one in waits.of_work(u.c, item.id) if one.state is not WaitState.OPEN]
    done = [job for job in jobs.of_session(u.c, item.session) if job.outcome]
    sent = [one for one in outbox.of_work(u.c, item.id) if one.receipt_id]
    below = relations.children(u.c, item.id)
    return Progress(
        woken_by=_last([f"{one.id} {one.trigger.kind}" for one in woken_by]),
        waited_for=tuple(
            f"{one.kind.value}, {one.state.value}: {one.why}; look first at: {one.look_first}"
            if one.look_first
            else f"{one.kind.value}, {one.state.value}: {one.why}"
            for one in past[-1:]
        ),
        jobs=_last([f"{job.id} {job.outcome} {job.code}" for job in done]),
        effects=_last([f"{one.id} sent {one.receipt_url or one.receipt_id}" for one in sent]),
        children=_last([f"{one.id} {one.state.value}: {one.goal[:100]}" for one in below]),
    )


def _last(facts: list[str]) -> tuple[str, ...]:
    return tuple(facts[-SHOWN:])


def place(item: WorkItem, binding: placing.Binding) -> Place:
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
