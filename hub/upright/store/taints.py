"""Taints: what a session has read that is trusted no more than it is itself (B14.2, B14.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa

from upright.core.ids import kind_of
from upright.core.mandate import Trust
from upright.store.tables import DELIVERY, ENTRY, SESSION, TAINT, TRIGGER
from upright.store.unit import Connection, Unit

MOST: Final = 8
"""So many are named: the newest triggers, then other things."""
_DEEPEST: Final = 4
_HUB: Final = "hub"
_TRUST: Final = sa.select(SESSION.c.taint).where(SESSION.c.id == sa.bindparam("session"))
_TAKEN: Final = (
    sa.select(TRIGGER.c.id, TRIGGER.c.source, TRIGGER.c.actor_id)
    .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
    .where(
        DELIVERY.c.session_id == sa.bindparam("session"),
        DELIVERY.c.taken_n.is_not(None),
        DELIVERY.c.taken_n >= sa.bindparam("since", type_=sa.Integer()),
        TRIGGER.c.trust <= sa.bindparam("trust"),
    )
    .order_by(TRIGGER.c.seq.desc())
    .limit(MOST)
)
_OTHER: Final = (
    sa.select(TAINT.c.ref)
    .where(TAINT.c.session_id == sa.bindparam("session"), TAINT.c.trust <= sa.bindparam("trust"))
    .order_by(TAINT.c.at_ms.desc(), TAINT.c.ref)
    .limit(MOST)
)


_SINCE: Final = sa.select(sa.func.min(ENTRY.c.n)).where(
    ENTRY.c.session_id == sa.bindparam("session"),
    ENTRY.c.generation
    == sa.select(SESSION.c.generation)
    .where(SESSION.c.id == sa.bindparam("session"))
    .scalar_subquery(),
)


def note(u: Unit, session: str, ref: str, trust: Trust) -> None:
    """Note that a session has read *ref* (an id, or a tool's name), which is trusted so far."""
    mine = sa.and_(TAINT.c.session_id == session, TAINT.c.ref == ref)
    u.c.execute(TAINT.delete().where(mine))
    u.c.execute(
        TAINT.insert().values(session_id=session, ref=ref, trust=int(trust), at_ms=u.now_ms)
    )


def carry(u: Unit, session: str, trust: Trust) -> None:
    """Note by name what tainted a generation that ends now, and taints the next one, too."""
    for ref in what(u.c, session, trust):
        note(u, session, ref, trust)


def forget(u: Unit, session: str) -> None:
    """Forget what tainted a generation that ended: the next one holds nothing of it."""
    u.c.execute(TAINT.delete().where(TAINT.c.session_id == session))


def trust_of(c: Connection, session: str) -> Trust | None:
    """Return how far a session is trusted by what it has read; None when there is no such one."""
    found = c.scalar(_TRUST, {"session": session})
    return None if found is None else Trust(found)


def of_words(c: Connection, session: str) -> Trust:
    """Return how far words of a session are trusted that the hub repeats to it later."""
    known = trust_of(c, session)
    return Trust.STRANGER if known is None else known


def what(c: Connection, session: str, trust: Trust) -> tuple[str, ...]:
    """Name what made a session trusted no more than *trust*: ids, up to ``MOST``.

    What another session told it stands for what that one had read. Of an operator's trust there
    is nothing to name.
    """
    if trust is Trust.OPERATOR:
        return ()
    return tuple(dict.fromkeys(_what(c, session, trust, seen=frozenset())))[:MOST]


def _what(c: Connection, session: str, trust: Trust, seen: frozenset[str]) -> Iterator[str]:
    within = {"session": session, "trust": int(trust)}
    since = c.scalar(_SINCE, {"session": session}) or 0
    further = []
    for row in c.execute(_TAKEN, {**within, "since": since}).all():
        if row.source == _HUB and kind_of(row.actor_id) == "session":
            further.append((row.actor_id, row.id))
        else:
            yield row.id
    for ref in c.scalars(_OTHER, within).all():
        if kind_of(ref) == "session":
            further.append((ref, ref))
        else:
            yield ref
    seen |= {session}
    for other, otherwise in further:
        if other in seen or len(seen) > _DEEPEST:
            continue
        found = list(_what(c, other, trust, seen))
        yield from found or [otherwise]


def cause(c: Connection, session: str) -> tuple[str, ...]:
    """Name the triggers of the last batch that a session took, oldest first, up to ``MOST``."""
    newest = (
        sa.select(sa.func.max(DELIVERY.c.taken_n))
        .where(DELIVERY.c.session_id == session)
        .scalar_subquery()
    )
    mine = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.taken_n == newest)
    return tuple(
        c.scalars(
            sa.select(DELIVERY.c.trigger_id).where(mine).order_by(DELIVERY.c.id).limit(MOST)
        ).all()
    )
