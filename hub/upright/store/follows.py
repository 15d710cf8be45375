"""Follows: who follows which thread: many to many, joined and left in one transaction (B6)."""

from __future__ import annotations

import sqlalchemy as sa

from upright.core.ids import SessionId, ThreadId
from upright.store import intake, sessions, threads, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.plain import Plain, listed
from upright.store.tables import SESSION, SUBSCRIPTION, THREAD, TRIGGER
from upright.store.unit import Unit


def join(u: Unit, session: str, thread: str, *, by: str) -> bool:
    """Let a live worker follow a thread; return False when it does already.

    Raises:
        UnknownIdError: there is no such session, or no such thread.
        NotNowError: it has ended, or it is no worker's.
    """
    row = u.c.execute(sa.select(SESSION).where(SESSION.c.id == session)).one_or_none()
    if row is None:
        raise UnknownIdError(session)
    if u.c.scalar(sa.select(THREAD.c.id).where(THREAD.c.id == thread)) is None:
        raise UnknownIdError(thread)
    if row.ended_at_ms is not None or row.work_id is None:
        raise NotNowError(session, "only a worker that has not ended can follow a thread")
    if follows(u.c, session, thread):
        return False
    work.subscribe(u, session, thread)
    about = About(session_id=session, work_id=row.work_id)
    record(u, "thread.followed", about, {"thread": thread, "by": by})
    return True


def leave(u: Unit, session: str, thread: str, *, by: str) -> list[SessionId]:
    """Let a session follow a thread no more; return who is woken.

    A trigger that raced this is in the worker's inbox or not: what is there unread goes to the
    router when nobody else that lives was given it, so each has exactly one owner (B6.4). What it
    follows by a link still stays with it.

    Raises:
        UnknownIdError: the session does not follow this thread.
    """
    mine = sa.and_(SUBSCRIPTION.c.session_id == session, SUBSCRIPTION.c.thread_id == thread)
    if u.c.execute(SUBSCRIPTION.delete().where(mine)).rowcount == 0:
        named = f"{session} on {thread}"
        raise UnknownIdError(named)
    work_id = u.c.scalar(sa.select(SESSION.c.work_id).where(SESSION.c.id == session))
    about = About(session_id=session, work_id=work_id)
    record(u, "thread.left", about, {"thread": thread, "by": by})
    own = ThreadId(thread)
    around = (own, *threads.linked(u.c, own))
    lost = [one for one in around if session not in threads.followers(u.c, one)]
    sessions.ensure_router(u)
    return intake.fall_back(u, session, lost) if lost else []


def follows(c: sa.Connection, session: str, thread: str) -> bool:
    """Say whether a session follows just this thread, linked ones left out."""
    mine = sa.and_(SUBSCRIPTION.c.session_id == session, SUBSCRIPTION.c.thread_id == thread)
    return c.scalar(sa.select(SUBSCRIPTION.c.session_id).where(mine)) is not None


def all_of(c: sa.Connection) -> list[Plain]:
    """List what live sessions follow, the newest first: session, work, thread, title, since."""
    last = sa.select(sa.func.max(TRIGGER.c.received_at_ms)).where(
        TRIGGER.c.thread_id == SUBSCRIPTION.c.thread_id
    )
    return listed(
        c,
        sa.select(
            SUBSCRIPTION.c.session_id,
            SESSION.c.work_id,
            SUBSCRIPTION.c.thread_id,
            THREAD.c.title,
            SUBSCRIPTION.c.created_at_ms,
            last.scalar_subquery().label("last_at_ms"),
        )
        .join(SESSION, SESSION.c.id == SUBSCRIPTION.c.session_id)
        .join(THREAD, THREAD.c.id == SUBSCRIPTION.c.thread_id)
        .where(SESSION.c.ended_at_ms.is_(None))
        .order_by(SUBSCRIPTION.c.created_at_ms.desc(), SUBSCRIPTION.c.session_id),
    )
