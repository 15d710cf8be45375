"""Privacy: which ids somebody may not see, because an item is private to somebody else (S5)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.core.ids import SessionId
from upright.store.errors import NotNowError
from upright.store.events import About, record
from upright.store.tables import (
    DELIVERY,
    ENTRY,
    JOB,
    OUTBOX,
    RELATION,
    REQUEST,
    TRIGGER,
    WAIT,
    WATCH,
    WORK,
)
from upright.store.unit import Unit

NOTHING: Final[frozenset[str]] = frozenset()
_MOST_DEPTH: Final = 20
_OTHERS: Final = sa.select(WORK.c.id, WORK.c.session_id, WORK.c.trigger_id).where(
    sa.literal_column("private_to <> ''"), WORK.c.private_to != sa.bindparam("who")
)


def hidden(c: sa.Connection, who: str) -> frozenset[str]:
    """Return every id that *who*, a person's name, may not see: of items and all that is theirs.

    While nothing is private this costs one look at an index that has no row.
    """
    items = c.execute(_OTHERS, {"who": who}).all()
    if not items:
        return NOTHING
    work = {row.id for row in items}
    sessions = {row.session_id for row in items}
    taken = sa.select(DELIVERY.c.trigger_id).where(DELIVERY.c.session_id.in_(sessions))
    triggers = {row.trigger_id for row in items} | set(c.scalars(taken))
    found = work | sessions | triggers
    for table in (WAIT, JOB, OUTBOX, REQUEST):
        found |= set(c.scalars(sa.select(table.c.id).where(table.c.work_id.in_(work))))
    found |= set(c.scalars(sa.select(WATCH.c.id).where(WATCH.c.session_id.in_(sessions))))
    mine = TRIGGER.c.id.in_(triggers)
    found |= set(c.scalars(sa.select(TRIGGER.c.payload_id).where(mine)))
    return frozenset(found | _threads(c, triggers) | _turns(c, triggers))


def triggers_of_others(who: str) -> sa.CompoundSelect[str]:
    """Select the triggers that *who* may not see: for a list that is cut to a length after that."""
    theirs = sa.and_(sa.literal_column("private_to <> ''"), WORK.c.private_to != who)
    sessions = sa.select(WORK.c.session_id).where(theirs)
    taken = sa.select(DELIVERY.c.trigger_id).where(DELIVERY.c.session_id.in_(sessions))
    opened = sa.select(WORK.c.trigger_id).where(theirs, WORK.c.trigger_id.is_not(None))
    return sa.union(opened, taken)


def _threads(c: sa.Connection, triggers: set[str]) -> set[str]:
    """Return the threads of which nothing else is known than what is hidden."""
    mine = sa.select(TRIGGER.c.thread_id).where(TRIGGER.c.id.in_(triggers))
    named = set(c.scalars(mine))
    rest = sa.select(TRIGGER.c.thread_id).where(
        TRIGGER.c.thread_id.in_(named), TRIGGER.c.id.not_in(triggers)
    )
    return named - set(c.scalars(rest))


def _turns(c: sa.Connection, triggers: set[str]) -> set[str]:
    """Return the turns that took what is hidden: the router's own words on it are hidden, too."""
    taken = sa.and_(
        ENTRY.c.session_id == DELIVERY.c.session_id,
        ENTRY.c.n == DELIVERY.c.taken_n,
        DELIVERY.c.trigger_id.in_(triggers),
    )
    query = sa.select(ENTRY.c.turn_id).join(DELIVERY, taken)
    return {turn for turn in c.scalars(query) if turn}


def set_private(u: Unit, work: str, who: str, *, private: bool) -> SessionId:
    """Let an item and all below it be seen by its owner alone, or by everybody again.

    Its owner is the person whose trigger opened it.

    Raises:
        NotNowError: it is somebody else's.
    """
    owner = u.c.scalar(
        sa.select(TRIGGER.c.person)
        .join(WORK, WORK.c.trigger_id == TRIGGER.c.id)
        .where(WORK.c.id == work)
    )
    if not owner or owner != who:
        said = f"it is {owner}'s" if owner else "nobody in [people] has opened it"
        raise NotNowError(work, f"only its owner may say so, and {said}")
    items = _below(u.c, work)
    mine = WORK.update().where(WORK.c.id.in_(items))
    u.c.execute(mine.values(private_to=who if private else ""))
    session: str = u.c.execute(sa.select(WORK.c.session_id).where(WORK.c.id == work)).scalar_one()
    about = About(work_id=work, session_id=session)
    record(u, "work.private" if private else "work.shared", about, {"by": who})
    return SessionId(session)


def inherit(u: Unit, child: str, parent: str) -> None:
    """Let a new item be seen by whom the one above it is seen by."""
    above = sa.select(WORK.c.private_to).where(WORK.c.id == parent).scalar_subquery()
    u.c.execute(WORK.update().where(WORK.c.id == child).values(private_to=above))


def _below(c: sa.Connection, work: str) -> set[str]:
    found, edge = {work}, {work}
    for _ in range(_MOST_DEPTH):
        query = sa.select(RELATION.c.work_id).where(
            RELATION.c.kind == "child_of", RELATION.c.other_id.in_(edge)
        )
        edge = set(c.scalars(query)) - found
        if not edge:
            break
        found |= edge
    return found
