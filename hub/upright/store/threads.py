"""Threads as rows: place a trigger by the joining rule, learn its keys, find who follows (B6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Context, Trigger
from upright.core.ids import SessionId, ThreadId
from upright.core.mandate import Trust
from upright.core.routing import join, page, pages
from upright.store.tables import SESSION, SUBSCRIPTION, THREAD, THREAD_KEY, THREAD_LINK
from upright.store.unit import Unit

# statements of the hot path are made once: building one costs more than running it
_KNOWN: Final = sa.select(THREAD_KEY.c.key, THREAD_KEY.c.thread_id).where(
    THREAD_KEY.c.key.in_(sa.bindparam("keys", expanding=True))
)
_ADD_THREAD: Final = THREAD.insert()
_ADD_KEY: Final = THREAD_KEY.insert()
_LINKED: Final = (
    sa.select(THREAD_LINK.c.other_id)
    .where(THREAD_LINK.c.thread_id == sa.bindparam("thread"))
    .order_by(THREAD_LINK.c.other_id)
)
_THESE: Final[sa.BindParameter[str]] = sa.bindparam("threads", expanding=True)
_LIVE: Final = sa.and_(SESSION.c.id == SUBSCRIPTION.c.session_id, SESSION.c.ended_at_ms.is_(None))
_FOLLOWED: Final = sa.union_all(
    sa.select(
        SUBSCRIPTION.c.thread_id.label("thread"),
        SUBSCRIPTION.c.session_id,
        SUBSCRIPTION.c.created_at_ms,
    )
    .join(SESSION, _LIVE)
    .where(SUBSCRIPTION.c.thread_id.in_(_THESE)),
    sa.select(
        THREAD_LINK.c.thread_id.label("thread"),
        SUBSCRIPTION.c.session_id,
        SUBSCRIPTION.c.created_at_ms,
    )
    .join(SUBSCRIPTION, SUBSCRIPTION.c.thread_id == THREAD_LINK.c.other_id)
    .join(SESSION, _LIVE)
    .where(THREAD_LINK.c.thread_id.in_(_THESE)),
)


@dataclass(slots=True)
class Places:
    """Where the triggers of one unit belong: keys that are known, and what is to be stored.

    What one trigger teaches, the next one finds.
    """

    known: dict[str, ThreadId] = field(default_factory=dict)
    made: list[dict[str, object]] = field(default_factory=list)
    learnt: list[dict[str, object]] = field(default_factory=list)
    links: list[tuple[ThreadId, ThreadId]] = field(default_factory=list)


def wanted(trigger: Trigger) -> set[str]:
    """Return the keys that decide where a trigger belongs."""
    context = _named(trigger)
    return {context.thread, *context.joins, *context.related, _own(trigger)} - {""}


def _named(trigger: Trigger) -> Context:
    """Return the context with the pages that the text links among what it mentions (B6.10)."""
    linked_pages = pages(trigger.content.text)
    context = trigger.context
    return replace(context, related=context.related + linked_pages) if linked_pages else context


def _own(trigger: Trigger) -> str:
    """Return the key of the trigger's own page: the fact ``url``, which its connector gives."""
    return page(dict(trigger.context.facts).get("url", ""))


def places(c: sa.Connection, keys: Collection[str]) -> Places:
    """Look up the threads that these keys belong to."""
    rows = c.execute(_KNOWN, {"keys": sorted(keys)}) if keys else ()
    return Places(known={row.key: ThreadId(row.thread_id) for row in rows})


def place(u: Unit, source: str, trigger: Trigger, trust: Trust, *, into: Places) -> ThreadId:
    """Find or make the thread; learn the keys and links that came with the trigger.

    *into* knows all that is :func:`wanted`; :func:`settle` stores what it learnt. Its own page is
    learnt, too, so that a message of another source that links it is known to be about it (B6.10).
    """
    found, own = join(_named(trigger), into.known, trust), _own(trigger)
    thread = found.thread or _make(u, source, trigger, into)
    new = [*found.learn, *([own] if own and own not in into.known else [])]
    into.known.update(dict.fromkeys(new, thread))
    into.learnt.extend({"key": key, "thread_id": thread} for key in new)
    into.links.extend((thread, other) for other in found.links)
    return thread


def _make(u: Unit, source: str, trigger: Trigger, into: Places) -> ThreadId:
    made = ThreadId(u.new_id("thread"))
    title = trigger.content.title[:200]
    row = {"id": made, "source": source, "title": title, "created_at_ms": u.now_ms}
    into.made.append(row)
    return made


def settle(c: sa.Connection, into: Places) -> None:
    """Store the threads that were made, and the keys and links that were learnt."""
    if into.made:
        c.execute(_ADD_THREAD, into.made)
    if into.learnt:
        c.execute(_ADD_KEY, into.learnt)
    for one, other in dict.fromkeys(into.links):
        link(c, one, other)


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
    return all_followers(c, {thread})[thread]


def all_followers(
    c: sa.Connection, these: Collection[ThreadId]
) -> dict[ThreadId, tuple[SessionId, ...]]:
    """Return who follows each of *these* threads, as :func:`followers` does."""
    began: dict[ThreadId, dict[str, int]] = {thread: {} for thread in these}
    for row in c.execute(_FOLLOWED, {"threads": sorted(these)}) if these else ():
        times = began[row.thread]
        times[row.session_id] = min(row.created_at_ms, times.get(row.session_id, row.created_at_ms))
    return {
        thread: tuple(SessionId(one) for one in sorted(times, key=lambda one: (times[one], one)))
        for thread, times in began.items()
    }


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
