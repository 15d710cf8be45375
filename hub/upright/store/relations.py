"""Relations of work items (B11.12), and how a child is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel, EffectClass
from upright.core.ids import SessionId, WorkId
from upright.core.mandate import Mandate, Trust
from upright.core.wait import WaitKind
from upright.core.work import TERMINAL, WorkItem, WorkState
from upright.store import homes, intake, privacy, sessions, threads, waits, work
from upright.store.errors import NotNowError
from upright.store.events import About, record
from upright.store.tables import RELATION, SESSION, WORK
from upright.store.unit import Unit

_DEEPEST: Final = 100  # so far up is looked, whatever the rows say


class RelationKind(StrEnum):
    """What one item is to another."""

    CHILD_OF = "child_of"
    FOLLOWS = "follows"
    DUPLICATES = "duplicates"
    BLOCKS = "blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """An item that stands in a relation: *kind* reads from ``work`` to ``other``."""

    kind: RelationKind
    work: WorkId
    other: WorkId


_CHILD: Final = RELATION.c.kind == RelationKind.CHILD_OF.value
_PARENT: Final = (
    sa.select(RELATION.c.other_id)
    .where(RELATION.c.work_id == sa.bindparam("item"), _CHILD)
    .limit(1)
)
_CHILDREN: Final = (
    sa.select(RELATION.c.work_id)
    .where(RELATION.c.other_id == sa.bindparam("item"), _CHILD)
    .order_by(RELATION.c.work_id)
)


def relate(u: Unit, one: str, kind: RelationKind, other: str) -> None:
    """Relate two items; doing it twice is no error.

    Raises:
        UnknownIdError: there is no such item.
        NotNowError: an item can't be related to itself.
    """
    if work.read(u.c, one).id == work.read(u.c, other).id:
        raise NotNowError(one, "an item is not related to itself")
    row = {"work_id": one, "kind": kind.value, "other_id": other}
    same = sa.and_(*(RELATION.c[name] == value for name, value in row.items()))
    if u.c.scalar(sa.select(RELATION.c.work_id).where(same)) is None:
        u.c.execute(RELATION.insert(), row)
        record(u, "work.related", About(work_id=one), {"kind": kind.value, "other": other})


def of(c: sa.Connection, item: str) -> list[Related]:
    """Read all relations of an item, both ways."""
    mine = sa.or_(RELATION.c.work_id == item, RELATION.c.other_id == item)
    rows = c.execute(sa.select(RELATION).where(mine).order_by(RELATION.c.work_id, RELATION.c.kind))
    return [
        Related(kind=RelationKind(row.kind), work=WorkId(row.work_id), other=WorkId(row.other_id))
        for row in rows
    ]


def parent(c: sa.Connection, item: str) -> WorkItem | None:
    """Read the item that an item is a child of."""
    found = c.scalar(_PARENT, {"item": item})
    return None if found is None else work.read(c, found)


def children(c: sa.Connection, item: str) -> list[WorkItem]:
    """Read an item's children, the oldest first."""
    found = c.scalars(_CHILDREN, {"item": item}).all()
    return [work.read(c, one) for one in found]


def depth(c: sa.Connection, item: str) -> int:
    """Return how many generations are above an item."""
    above, at = 0, parent(c, item)
    while at is not None and above < _DEEPEST:
        above, at = above + 1, parent(c, at.id)
    return above


# ------------------------------------------------------------------ children
@dataclass(frozen=True, slots=True, kw_only=True)
class Spawning:
    """What a parent asks of a child. ``taint`` is the parent's: its words are no cleaner.

    ``agent`` is whose work it will be; without a name that of the parent's agent.
    """

    goal: str
    criteria: Sequence[str]
    taint: Trust
    agent: str = ""


def spawn(u: Unit, item: WorkItem, asked: Spawning) -> WorkItem:
    """Open a child with a session and a thread of its own, in one transaction.

    Raises:
        NotNowError: the parent is too deep down, or has as many children as it may have; or the
            agent has as many items.
    """
    own, _ = homes.of_session(u.c, item.session)
    bounds = u.terms.bounds.for_agent(own)
    if depth(u.c, item.id) >= bounds.depth:
        raise NotNowError(item.id, f"it is {bounds.depth} generations down: do it yourself")
    if len(children(u.c, item.id)) >= bounds.children:
        raise NotNowError(item.id, f"it has had {bounds.children} children, which is the most")
    agent = asked.agent or own
    homes.check_free(u, agent)
    made = WorkId(u.new_id("work"))
    session = sessions.create(u, kind="worker", agent=agent, work=None, trust=asked.taint)
    thread = threads.own(u, session)
    notice = intake.Notice(
        kind="work.asked",
        channel=Channel.JOB,
        title=f"asked by {item.id}",
        text=asked.goal,
        actor=Actor(id=item.session, name="worker", kind=ActorKind.SYSTEM),
        trust=asked.taint,
        facts=(("parent", item.id),),
    )
    trigger = intake.notify(u, session, thread, notice)
    child = WorkItem(
        id=made,
        session=session,
        trigger=trigger,
        thread=thread,
        goal=asked.goal,
        criteria=tuple(dict.fromkeys(asked.criteria)),
        mandate=narrowed(item.mandate, asked.taint),
        code=item.code,
    )
    work.insert(u, child)
    u.c.execute(SESSION.update().where(SESSION.c.id == session).values(work_id=made))
    work.subscribe(u, session, thread)
    relate(u, made, RelationKind.CHILD_OF, item.id)
    privacy.inherit(u, made, item.id)
    about = About(trigger_id=trigger, session_id=session, work_id=made)
    record(u, "work.opened", about, {"goal": asked.goal, "parent": item.id})
    return child


def narrowed(mandate: Mandate, taint: Trust) -> Mandate:
    """Return a child's mandate: never more than its parent's, and it speaks to nobody outside."""
    return Mandate(
        given_by=mandate.given_by,
        trust=min(mandate.trust, taint),
        ask=mandate.ask,
        deny=mandate.deny | {EffectClass.REPLY, EffectClass.REACH},
    )


def child_ref(child: str) -> str:
    """Return what a wait for a child's end names."""
    return f"{work.CHILD}{child}"


def wait_for(u: Unit, item: WorkItem, child: WorkItem) -> str:
    """Let an item yield to its child; return the wait's id.

    Raises:
        NotNowError: the child has ended already, or is another's (B11.5).
    """
    own = parent(u.c, child.id)
    if own is None or own.id != item.id:
        raise NotNowError(child.id, "it is no child of this item")
    if child.state in TERMINAL:
        raise NotNowError(child.id, f"it is {child.state.value} already: {child.reason}")
    why = f"child {child.id} to end: {child.goal}"[:200]
    asked = waits.Asked(kind=WaitKind.SYSTEM, ref=child_ref(child.id), why=why)
    return waits.register(u, item.id, asked).id


def live_children(c: sa.Connection, item: str) -> list[WorkItem]:
    """Read an item's children that have not ended."""
    return [child for child in children(c, item) if child.state not in TERMINAL]


def session_of_parent(c: sa.Connection, item: str) -> SessionId | None:
    """Return the session of the item that asked for this one, if it still lives."""
    above = parent(c, item)
    return None if above is None or above.state in TERMINAL else above.session


def states(c: sa.Connection, ids: Sequence[str]) -> dict[str, WorkState]:
    """Return the states of items by their ids."""
    rows = c.execute(sa.select(WORK.c.id, WORK.c.state).where(WORK.c.id.in_(ids)))
    return {row.id: WorkState(row.state) for row in rows}
