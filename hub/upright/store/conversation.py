"""Conversation: what the hub itself has stored of the talk around a trigger."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from upright.api import Message
from upright.core.ids import TriggerId
from upright.core.mandate import Trust
from upright.core.talk import Around, Near
from upright.core.trigger import StoredTrigger
from upright.store import codec
from upright.store.tables import TRIGGER

DELETED: Final = ".deleted"
_MESSAGES: Final = sa.select(TRIGGER).where(
    TRIGGER.c.thread_id == sa.bindparam("thread"),
    TRIGGER.c.source == sa.bindparam("source"),
    TRIGGER.c.edits_id.is_(None),
)
_OWN: Final = sa.select(TRIGGER.c.seq).where(TRIGGER.c.id == sa.bindparam("id")).scalar_subquery()
_BEFORE: Final = _MESSAGES.where(TRIGGER.c.seq < _OWN).order_by(TRIGGER.c.seq.desc())
_AFTER: Final = _MESSAGES.where(TRIGGER.c.seq > _OWN).order_by(TRIGGER.c.seq)
_EDITS: Final = (
    sa.select(TRIGGER)
    .where(TRIGGER.c.edits_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(TRIGGER.c.seq)
)

Row = sa.Row[tuple[object, ...]]


def around(c: sa.Connection, stored: StoredTrigger, before: int, after: int) -> Around:
    """Return the source's triggers of the same thread around one, oldest first.

    An edited text is shown as it is now; what was deleted is left out. It is never ``whole``: the
    hub knows only what it was told.
    """
    given = {"thread": stored.thread, "source": stored.source, "id": stored.id}
    earlier = c.execute(_BEFORE.limit(before), given).all()[::-1]
    later = c.execute(_AFTER.limit(after), given).all()
    edits = _newest(c, [row.id for row in (*earlier, *later)])
    return Around(before=_shown(earlier, edits), after=_shown(later, edits))


def _newest(c: sa.Connection, ids: list[str]) -> dict[str, Row]:
    """Return the last edit of each, by what it edits."""
    return {row.edits_id: row for row in c.execute(_EDITS, {"ids": ids})}


def _shown(rows: Iterable[Row], edits: dict[str, Row]) -> tuple[Near, ...]:
    now = [(row, edits.get(row.id, row)) for row in rows]
    return tuple(_near(row, last) for row, last in now if not last.kind.endswith(DELETED))


def _near(row: Row, last: Row) -> Near:
    first, shown = codec.load_trigger(row.body_json), codec.load_trigger(last.body_json)
    text = shown.content.text or shown.content.title
    received = datetime.fromtimestamp(row.received_at_ms / 1000, UTC)
    message = Message(id=row.id, author=first.actor, text=text, at=first.occurred_at or received)
    trust = min(Trust(row.trust), Trust(last.trust))
    return Near(message=message, trust=trust, trigger=TriggerId(row.id))
