"""Access: what a session may read, by its mandate (B7.6).

The router sees across all items. A worker reads its own threads and what they link to: the
triggers there, the items that were opened for them, those that it follows or has spawned, and all
of theirs. What belongs to a private conversation is not read by a worker whose answers are public.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.core.work import WorkItem
from upright.store import secrecy
from upright.store.relations import RelationKind
from upright.store.tables import (
    DELIVERY,
    JOB,
    OUTBOX,
    RELATION,
    REQUEST,
    SUBSCRIPTION,
    THREAD_LINK,
    TRIGGER,
    WAIT,
    WORK,
)

MAX_BEFORE: Final = 20
"""How many items back, along ``follows`` and ``child_of``, a worker may read."""
_OWNERS: Final = {
    "job": JOB.c.work_id,
    "outbox": OUTBOX.c.work_id,
    "wait": WAIT.c.work_id,
    "request": REQUEST.c.work_id,
    "session": WORK.c.id,
}


def may_read(c: sa.Connection, item: WorkItem | None, kind: str, wanted: str) -> bool:
    """Say whether a session with this *item* (the router's has none) may read something."""
    if item is None:
        return True
    if kind == "trigger" and _given(c, item.session, wanted):
        return True
    thread = thread_of(c, kind, wanted)
    if thread not in {None, item.thread} and _is_closed(c, item, str(thread)):
        return False
    if kind in {"trigger", "thread"}:
        return thread in threads(c, item)
    return work_of(c, kind, wanted) in items(c, item)


def _is_closed(c: sa.Connection, item: WorkItem, thread: str) -> bool:
    return secrecy.is_private(c, thread) and not secrecy.is_private(c, item.thread)


def threads(c: sa.Connection, item: WorkItem) -> set[str]:
    """Return the threads of an item, those of the items before it, and what they link to."""
    followed = sa.select(SUBSCRIPTION.c.thread_id).where(SUBSCRIPTION.c.session_id == item.session)
    before = sa.select(WORK.c.thread_id).where(WORK.c.id.in_(_kin(c, item.id)))
    own = {item.thread, *c.scalars(followed), *c.scalars(before)}
    linked = sa.select(THREAD_LINK.c.other_id).where(THREAD_LINK.c.thread_id.in_(own))
    return own | set(c.scalars(linked))


def items(c: sa.Connection, item: WorkItem) -> set[str]:
    """Return the items that a worker may read: its kin, and those of its threads."""
    of = sa.select(WORK.c.id).where(WORK.c.thread_id.in_(threads(c, item)))
    return {*_kin(c, item.id), *c.scalars(of)}


def _kin(c: sa.Connection, item: str) -> set[str]:
    """Return an item, those before it, its parents and its children, a bounded way."""
    kinds = (RelationKind.FOLLOWS.value, RelationKind.CHILD_OF.value)
    known, fresh = {item}, {item}
    for _ in range(MAX_BEFORE):
        up = sa.select(RELATION.c.other_id).where(
            RELATION.c.work_id.in_(fresh), RELATION.c.kind.in_(kinds)
        )
        fresh = set(c.scalars(up)) - known
        if not fresh:
            break
        known |= fresh
    below = sa.select(RELATION.c.work_id).where(
        RELATION.c.other_id == item, RELATION.c.kind == RelationKind.CHILD_OF.value
    )
    return known | set(c.scalars(below))


def _given(c: sa.Connection, session: str, trigger: str) -> bool:
    mine = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.trigger_id == trigger)
    return c.scalar(sa.select(DELIVERY.c.id).where(mine)) is not None


# ------------------------------------------------------------------ whose something is
def work_of(c: sa.Connection, kind: str, wanted: str) -> str | None:
    """Return the item that something is of."""
    if kind == "work":
        return wanted
    owner = _OWNERS.get(kind)
    if owner is None:
        return None
    key = WORK.c.session_id if kind == "session" else owner.table.c.id
    return c.scalar(sa.select(owner).where(key == wanted))


def thread_of(c: sa.Connection, kind: str, wanted: str) -> str | None:
    """Return the thread that something belongs to, by its item; the router's has none."""
    if kind == "thread":
        return wanted
    if kind == "trigger":
        return c.scalar(sa.select(TRIGGER.c.thread_id).where(TRIGGER.c.id == wanted))
    work = work_of(c, kind, wanted)
    return c.scalar(sa.select(WORK.c.thread_id).where(WORK.c.id == work)) if work else None
