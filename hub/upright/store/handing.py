"""Handing on: the router gives a trigger to a worker that lives; a worker gives one back (B6.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel
from upright.core.ids import SessionId
from upright.core.mandate import Trust
from upright.core.trigger import StoredTrigger
from upright.core.work import TERMINAL, WorkItem
from upright.store import follows, intake, requests, sessions, threads
from upright.store.errors import NotNowError
from upright.store.events import About, record
from upright.store.tables import DELIVERY, HANDBACK
from upright.store.unit import Unit

MOST_BACK: Final = 2
"""How many workers may give one trigger back before a person is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """To which session a trigger went; ``given`` is False when it had it, ``follows`` when new."""

    session: SessionId
    given: bool
    follows: bool


def forward(u: Unit, stored: StoredTrigger, item: WorkItem, router: str) -> Forwarded:
    """Give a trigger of the router's to a worker, which is woken; once (B6.2).

    On a thread that nobody follows the worker does from now on, and what waits of it unread with
    the router is the worker's, in its order (B6.3).

    Raises:
        NotNowError: the item is over, or its worker has given this trigger back.
    """
    if item.state in TERMINAL:
        why = f"it is {item.state.value}; spawn a new item, which follows it"
        raise NotNowError(item.id, why)
    reason = _given_back(u.c, stored.id, item.session)
    if reason is not None:
        raise NotNowError(item.id, f"its worker gave {stored.id} back: {reason}")
    given = intake.hand_on(u, item.session, stored)
    from_outside = stored.source != intake.HUB_SOURCE
    alone = from_outside and not threads.followers(u.c, stored.thread)
    if alone:
        follows.join(u, item.session, stored.thread, by="router")
        for one in _waiting(u.c, stored, router):
            intake.hand_on(u, item.session, one)
            _drop(u, router, one.id)
    about = About(trigger_id=stored.id, session_id=item.session, work_id=item.id)
    record(u, "trigger.forwarded", about, {"given": given, "follows": alone})
    return Forwarded(session=item.session, given=given, follows=alone)


def _waiting(c: sa.Connection, stored: StoredTrigger, router: str) -> list[StoredTrigger]:
    return [
        one
        for one in intake.unread(c, router)
        if one.thread == stored.thread and one.source != intake.HUB_SOURCE and one.id != stored.id
    ]


def _drop(u: Unit, session: str, trigger: str) -> None:
    mine = sa.and_(DELIVERY.c.session_id == session, DELIVERY.c.trigger_id == trigger)
    u.c.execute(DELIVERY.delete().where(mine))


# ------------------------------------------------------------------ back
@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """Who gives what back, why, and how far the words of the reason are trusted."""

    item: WorkItem
    trigger: StoredTrigger
    reason: str
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedBack:
    """How often the trigger has been given back; the question to a person, if it came to that."""

    times: int
    request: str | None


def hand_back(u: Unit, back: Back) -> HandedBack:
    """Return a trigger to the router with the reason; the second time to a person (B6.5).

    The router is woken by a notice that names both, and finds the trigger in its inbox if it never
    had it. A thread that was not the worker's own is followed by it no more.

    Raises:
        NotNowError: this worker has given it back before.
    """
    item, stored = back.item, back.trigger
    if _given_back(u.c, stored.id, item.session) is not None:
        raise NotNowError(stored.id, "you have given it back already")
    earlier = _times(u.c, stored.id)
    u.c.execute(
        HANDBACK.insert().values(
            trigger_id=stored.id, session_id=item.session, reason=back.reason, at_ms=u.now_ms
        )
    )
    about = About(trigger_id=stored.id, session_id=item.session, work_id=item.id)
    record(u, "trigger.handed_back", about, {"reason": back.reason, "times": earlier + 1})
    router = sessions.ensure_router(u)
    if not intake.was_delivered(u.c, router, stored.id):
        row = {"session_id": router, "trigger_id": stored.id, "wake": False, "strategy": "queue"}
        u.c.execute(DELIVERY.insert(), row)
    if stored.thread != item.thread and follows.follows(u.c, item.session, stored.thread):
        follows.leave(u, item.session, stored.thread, by="worker")
    if earlier + 1 >= MOST_BACK:
        return HandedBack(times=earlier + 1, request=_ask(u, stored, router))
    intake.notify(u, router, item.thread, _notice(back))
    return HandedBack(times=earlier + 1, request=None)


def _notice(back: Back) -> intake.Notice:
    item, stored = back.item, back.trigger
    return intake.Notice(
        kind="worker.hand_back",
        channel=Channel.JOB,
        title=f"{item.id} gives {stored.id} back",
        text=back.reason,
        actor=Actor(id=item.session, name="worker", kind=ActorKind.SYSTEM),
        trust=min(back.trust, stored.trust),
        dedupe=(f"hand_back:{stored.id}:{item.session}",),
        facts=(("work", item.id), ("trigger", stored.id)),
    )


def _ask(u: Unit, stored: StoredTrigger, router: str) -> str:
    """Ask a person: whoever was given it gave it back."""
    rows = u.c.execute(
        sa.select(HANDBACK.c.session_id, HANDBACK.c.reason)
        .where(HANDBACK.c.trigger_id == stored.id)
        .order_by(HANDBACK.c.at_ms, HANDBACK.c.session_id)
    )
    reasons = "\n".join(f"- {row.session_id}: {row.reason}" for row in rows)
    prompt = f"Nobody takes {stored.id} ({stored.trigger.content.title}). Who should?\n{reasons}"
    return requests.ask(u, requests.Asking(prompt=prompt, session=router))


def _given_back(c: sa.Connection, trigger: str, session: str) -> str | None:
    """Return why this session gave it back, or None."""
    mine = sa.and_(HANDBACK.c.trigger_id == trigger, HANDBACK.c.session_id == session)
    found: str | None = c.scalar(sa.select(HANDBACK.c.reason).where(mine))
    return found


def _times(c: sa.Connection, trigger: str) -> int:
    counted = sa.select(sa.func.count()).where(HANDBACK.c.trigger_id == trigger)
    return int(c.scalar(counted) or 0)
