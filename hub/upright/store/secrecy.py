"""Secrecy: which conversations are private, and which sessions know something of them (B7.6)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from upright.api import Address, Channel
from upright.core.ids import kind_of
from upright.core.trigger import StoredTrigger
from upright.store import codec, taints
from upright.store.ledger import HUB_SOURCE
from upright.store.tables import SESSION, TRIGGER

_PRIVATE: Final = frozenset({Channel.MAIL, Channel.PHONE, Channel.SMS, Channel.CALENDAR})


def is_private(c: sa.Connection, thread: str) -> bool:
    """Say whether a thread is a conversation that not everybody can read: by how it began."""
    first = sa.select(TRIGGER.c.body_json).where(TRIGGER.c.thread_id == thread)
    body = c.scalar(first.order_by(TRIGGER.c.seq).limit(1))
    if body is None:
        return False
    trigger = codec.load_trigger(body)
    is_talk = trigger.channel is Channel.CHAT and trigger.context.address is Address.DIRECT
    return is_talk or trigger.channel in _PRIVATE


def tells_private(c: sa.Connection, triggers: Collection[StoredTrigger]) -> bool:
    """Say whether a batch tells what is private: by its conversation, or by the session it is of.

    What one session tells another is as private as what that one has read.
    """
    threads_of = {one.thread for one in triggers}
    actors = {one.trigger.actor.id for one in triggers if one.source == HUB_SOURCE}
    tellers = [actor for actor in sorted(actors) if kind_of(actor) == "session"]
    return any(is_private(c, thread) for thread in sorted(threads_of)) or any(
        holds_private(c, teller) for teller in tellers
    )


def was_told_private(c: sa.Connection, session: str) -> bool:
    """Say whether the last batch that a session took was of a private conversation."""
    last = sa.select(TRIGGER.c.thread_id).where(TRIGGER.c.id.in_(taints.cause(c, session)))
    return any(is_private(c, thread) for thread in c.scalars(last.distinct()).all())


def holds_private(c: sa.Connection, session: str) -> bool:
    """Say whether a session's generation has read what is private (it may not tell everybody)."""
    return bool(c.scalar(sa.select(SESSION.c.private).where(SESSION.c.id == session)))
