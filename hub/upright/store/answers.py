"""Answers: each trigger is answered once, whoever of its followers is the first (B6.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind
from upright.core.outbox import OutboxState
from upright.core.work import WorkItem
from upright.store import threads
from upright.store.intake import HUB_SOURCE
from upright.store.tables import DELIVERY, OUTBOX, TRIGGER
from upright.store.unit import Connection

PROGRESS: Final = ":progress"
"""How the key of an effect ends that is no answer."""
_GONE: Final = (OutboxState.DEAD.value, OutboxState.EXPIRED.value)
_PEOPLE: Final = tuple(
    kind.value
    for kind in (ActorKind.OPERATOR, ActorKind.MEMBER, ActorKind.CONTACT, ActorKind.STRANGER)
)
_TAKEN: Final = (
    sa.select(TRIGGER.c.id)
    .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
    .where(
        DELIVERY.c.session_id == sa.bindparam("session"),
        DELIVERY.c.taken_n.is_not(None),
        DELIVERY.c.wake,
    )
    .order_by(TRIGGER.c.seq.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The effect that answers a trigger, and whose it is."""

    effect: str
    session: str
    work: str | None


def default_of(c: Connection, item: WorkItem) -> str:
    """Return the trigger that a worker's words on its own thread answer when it names none.

    That is the newest which it took there, or on a linked one, and which a person said; checks
    and bots are not answered. Without one it is the trigger that opened the item.
    """
    own = (item.thread, *threads.linked(c, item.thread))
    said = _TAKEN.where(
        TRIGGER.c.thread_id.in_(own),
        TRIGGER.c.source != HUB_SOURCE,
        TRIGGER.c.actor_kind.in_(_PEOPLE),
    )
    return c.scalar(said, {"session": item.session}) or item.trigger


def answered(c: Connection, trigger: str, session: str, *, works: bool) -> Answered | None:
    """Return the answer that stands in the way of another one by *session*.

    Another worker's does, always; its own does until something newer was taken. What the router
    said is in the router's way alone (*works* is False then): it passes the trigger on as well.
    What never became visible answers nothing.
    """
    found = c.execute(
        sa.select(OUTBOX.c.id, OUTBOX.c.session_id, OUTBOX.c.work_id, OUTBOX.c.created_at_ms)
        .where(
            OUTBOX.c.trigger_id == trigger,
            OUTBOX.c.state.not_in(_GONE),
            sa.not_(OUTBOX.c.idempotency_key.endswith(PROGRESS, autoescape=True)),
        )
        .order_by(OUTBOX.c.id.desc())
    ).all()
    for row in found:
        its_own = row.session_id == session
        by_router = row.work_id is None
        if (its_own and _newer(c, session, row.created_at_ms)) or (by_router and works):
            continue
        return Answered(effect=row.id, session=row.session_id, work=row.work_id)
    return None


def _newer(c: Connection, session: str, at_ms: int) -> bool:
    """Say whether something that wakes came for a session after *at_ms*, and was taken."""
    since = _TAKEN.where(TRIGGER.c.received_at_ms > at_ms)
    return c.scalar(since, {"session": session}) is not None
