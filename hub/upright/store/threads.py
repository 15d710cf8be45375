"""Threads as rows: place a trigger by the joining rule, learn its keys, find who follows (B6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from upright.api import Trigger
from upright.core.ids import SessionId, ThreadId
from upright.core.mandate import Trust
from upright.core.routing import join
from upright.store.tables import SESSION, SUBSCRIPTION, THREAD, THREAD_KEY, THREAD_LINK
from upright.store.unit import Unit

# statements of the hot path are made once: building one costs more than running it
_KNOWN: Final = sa.select(THREAD_KEY.c.key, THREAD_KEY.c.thread_id).where(
    THREAD_KEY.c.key.in_(sa.bindparam("keys", expanding=True))
)
_LINKED: Final = (
    sa.select(THREAD_LINK.c.other_id)
    .where(THREAD_LINK.c.thread_id == sa.bindparam("thread"))
    .order_by(THREAD_LINK.c.other_id)
)
_FOLLOWERS: Final = (
    sa.select(SUBSCRIPTION.c.session_id, sa.func.min(SUBSCRIPTION.c.created_at_ms).label("at"))
    .join(SESSION, SESSION.c.id == SUBSCRIPTION.c.session_id)
    .where(
        sa.or_(
            SUBSCRIPTION.c.thread_id == sa.bindparam("thread"),
            SUBSCRIPTION.c.thread_id.in_(
                sa.select(THREAD_LINK.c.other_id).where(
                    THREAD_LINK.c.thread_id == sa.bindparam("thread")
                )
            ),
        ),
        SESSION.c.ended_at_ms.is_(None),
    )
    .group_by(SUBSCRIPTION.c.session_id)
    .order_by("at", SUBSCRIPTION.c.session_id)
)


def place(u: Unit, source: str, trigger: Trigger, trust: Trust) -> ThreadId:
    """Find or make the thread; learn the keys and links that came with the trigger."""
    context = trigger.context
    wanted = {context.thread, *context.joins, *context.related} - {""}
    rows = u.c.execute(_KNOWN, {"keys": sorted(wanted)})
    found = join(context, {row.key: ThreadId(row.thread_id) for row in rows}, trust)
    thread = found.thread or _make(u, source, trigger)
    if found.learn:
        learnt = [{"key": key, "thread_id": thread} for key in found.learn]
        u.c.execute(THREAD_KEY.insert(), learnt)
    for other in found.links:
        link(u.c, thread, other)
    return thread


def _make(u: Unit, source: str, trigger: Trigger) -> ThreadId:
    made = ThreadId(u.new_id("thread"))
    title = trigger.content.title[:200]
    u.c.execute(THREAD.insert().values(id=made, source=source, title=title, created_at_ms=u.now_ms))
    return made


def link(c: sa.Connection, one: str, other: str) -> None:
    """Link two threads, both ways round; doing it twice is no error."""
    known = set(linked(c, ThreadId(one)))
    if other != one and other not in known:
        pair = [{"thread_id": one, "other_id": other}, {"thread_id": other, "other_id": one}]
        c.execute(THREAD_LINK.insert(), pair)


def linked(c: sa.Connection, thread: ThreadId) -> tuple[ThreadId, ...]:
    """Return the threads that are linked with *thread*."""
    return tuple(ThreadId(other) for other in c.scalars(_LINKED, {"thread": thread}))


def learn(u: Unit, thread: ThreadId, keys: Sequence[str]) -> None:
    """Teach a thread keys that nobody else has; what is known already stays where it is."""
    known = set(u.c.scalars(sa.select(THREAD_KEY.c.key).where(THREAD_KEY.c.key.in_(keys))))
    new = [{"key": key, "thread_id": thread} for key in dict.fromkeys(keys) if key not in known]
    if new:
        u.c.execute(THREAD_KEY.insert(), new)


def followers(c: sa.Connection, thread: ThreadId) -> tuple[SessionId, ...]:
    """Return the live sessions that follow a thread or a linked one, as they began to."""
    return tuple(SessionId(row.session_id) for row in c.execute(_FOLLOWERS, {"thread": thread}))


def own(u: Unit, session: str) -> ThreadId:
    """Return the thread in which people speak with one session; made when it is first needed."""
    key = f"hub:{session}"
    found = u.c.scalar(sa.select(THREAD_KEY.c.thread_id).where(THREAD_KEY.c.key == key))
    if found is not None:
        return ThreadId(found)
    made = ThreadId(u.new_id("thread"))
    u.c.execute(
        THREAD.insert().values(id=made, source="hub", title="the operator", created_at_ms=u.now_ms)
    )
    u.c.execute(THREAD_KEY.insert().values(key=key, thread_id=made))
    return made
