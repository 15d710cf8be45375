"""Views: what the API and the CLI show, read from the rows. Values are JSON-able (``plain.Plain``).

Every view that is asked for one thing raises UnknownIdError when there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from upright.core.retention import pruned_on
from upright.core.transcript import decode
from upright.store import costs
from upright.store.errors import UnknownIdError
from upright.store.plain import Plain, columns, listed, one, plain
from upright.store.tables import (
    DELIVERY,
    ENTRY,
    LEDGER,
    OUTBOX,
    PAYLOAD,
    SESSION,
    SOURCE,
    SUBSCRIPTION,
    THREAD,
    THREAD_KEY,
    TRIGGER,
    TURN,
    WORK,
)

_TURNS_SHOWN = 50


# ------------------------------------------------------------------ triggers
def trigger(c: sa.Connection, trigger_id: str) -> Plain:
    """Return a trigger whole: ``body``, verdict and disposition with their reasons.

    Also ``thread`` with its keys, ``deliveries`` (each with the session's kind and item, and the
    turn that took it), ``payload`` (``raw`` says whether it is kept), ``work_id``, ``outbox``.
    """
    found = one(c, TRIGGER, trigger_id)
    found["body"].pop("raw", None)  # the payload has the bytes
    found["thread"] = thread(c, found["thread_id"])
    found["deliveries"] = deliveries(c, trigger_id)
    found["payload"] = _payload(c, found["payload_id"])
    edits = sa.select(TRIGGER.c.id).where(TRIGGER.c.edits_id == trigger_id)
    found["edited_by"] = list(c.scalars(edits.order_by(TRIGGER.c.seq)))
    found["work_id"] = c.scalar(sa.select(WORK.c.id).where(WORK.c.trigger_id == trigger_id))
    found["outbox"] = listed(
        c, sa.select(OUTBOX).where(OUTBOX.c.trigger_id == trigger_id).order_by(OUTBOX.c.id)
    )
    return found


def thread(c: sa.Connection, thread_id: str) -> Plain:
    """Return a thread, its ``keys``, and the sessions that follow it."""
    found = one(c, THREAD, thread_id)
    keys = sa.select(THREAD_KEY.c.key).where(THREAD_KEY.c.thread_id == thread_id)
    found["keys"] = list(c.scalars(keys.order_by(THREAD_KEY.c.key)))
    followers = sa.select(SUBSCRIPTION.c.session_id).where(SUBSCRIPTION.c.thread_id == thread_id)
    found["sessions"] = list(c.scalars(followers.order_by(SUBSCRIPTION.c.session_id)))
    return found


def deliveries(c: sa.Connection, trigger_id: str) -> list[Plain]:
    """List to whom a trigger went, and in which turn each took it (``turn_id``, or None)."""
    taken_by = sa.and_(ENTRY.c.session_id == DELIVERY.c.session_id, ENTRY.c.n == DELIVERY.c.taken_n)
    return listed(
        c,
        sa.select(
            DELIVERY.c.session_id,
            SESSION.c.kind.label("session_kind"),
            SESSION.c.work_id,
            DELIVERY.c.wake,
            DELIVERY.c.folded,
            DELIVERY.c.strategy,
            DELIVERY.c.taken_n,
            ENTRY.c.turn_id,
            ENTRY.c.at_ms.label("taken_at_ms"),
        )
        .outerjoin(SESSION, SESSION.c.id == DELIVERY.c.session_id)
        .outerjoin(ENTRY, taken_by)
        .where(DELIVERY.c.trigger_id == trigger_id)
        .order_by(DELIVERY.c.id),
    )


def _payload(c: sa.Connection, payload_id: str) -> Plain | None:
    chosen = sa.select(*columns(PAYLOAD, without=["body"])).where(PAYLOAD.c.id == payload_id)
    row = c.execute(chosen).mappings().one_or_none()
    return None if row is None else {**plain(row), "raw": _where(row)}


def _where(row: sa.RowMapping) -> str:
    """Say where a payload's bytes are."""
    if row["pruned_at_ms"] is not None:
        return pruned_on(row["pruned_at_ms"])
    return "in a file" if row["spilled"] else "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A payload: its ``body``, or the digest of the file that has it; both empty: pruned."""

    media_type: str
    body: bytes
    spilled: str
    pruned: str


def payload(c: sa.Connection, payload_id: str) -> Raw:
    """Return a payload, or when it was pruned.

    Raises:
        UnknownIdError: there is none.
    """
    row = c.execute(sa.select(PAYLOAD).where(PAYLOAD.c.id == payload_id)).one_or_none()
    if row is None:
        raise UnknownIdError(payload_id)
    return Raw(
        media_type=row.media_type,
        body=bytes(row.body),
        spilled=row.spilled,
        pruned=pruned_on(row.pruned_at_ms),
    )


# ------------------------------------------------------------------ sessions
def session(c: sa.Connection, session_id: str) -> Plain:
    """Return a session with its ``subscriptions``, ``pending`` inbox, ``turns`` and ``costs``.

    ``status`` is ``ended``, ``running`` (a lease is held), ``ready`` or ``resting``;
    ``transcript`` says whether it is kept.
    """
    found = one(c, SESSION, session_id)
    found["status"] = _status(found)
    found["transcript"] = pruned_on(found["pruned_at_ms"]) or "kept"
    found["subscriptions"] = listed(
        c,
        sa.select(SUBSCRIPTION.c.thread_id, THREAD.c.title, SUBSCRIPTION.c.created_at_ms)
        .outerjoin(THREAD, THREAD.c.id == SUBSCRIPTION.c.thread_id)
        .where(SUBSCRIPTION.c.session_id == session_id)
        .order_by(SUBSCRIPTION.c.created_at_ms, SUBSCRIPTION.c.thread_id),
    )
    found["pending"] = listed(
        c,
        sa.select(DELIVERY.c.trigger_id, DELIVERY.c.wake)
        .where(DELIVERY.c.session_id == session_id, DELIVERY.c.taken_n.is_(None))
        .order_by(DELIVERY.c.id),
    )
    count = sa.select(sa.func.count()).select_from(ENTRY)
    found["entries"] = c.scalar(count.where(ENTRY.c.session_id == session_id))
    latest = sa.select(TURN).where(TURN.c.session_id == session_id)
    latest = latest.order_by(TURN.c.started_at_ms.desc(), TURN.c.id.desc()).limit(_TURNS_SHOWN)
    found["turns"] = listed(c, latest)[::-1]
    found["costs"] = costs.total(c, LEDGER.c.session_id == session_id)
    return found


def sessions(c: sa.Connection, *, limit: int, live_only: bool = False) -> list[Plain]:
    """List sessions, the newest first, each with its ``status`` and its item's ``goal``."""
    chosen = (
        sa.select(SESSION, WORK.c.goal, WORK.c.state.label("work_state"))
        .outerjoin(WORK, WORK.c.id == SESSION.c.work_id)
        .order_by(SESSION.c.created_at_ms.desc(), SESSION.c.id.desc())
        .limit(limit)
    )
    if live_only:
        chosen = chosen.where(SESSION.c.ended_at_ms.is_(None))
    return [{**row, "status": _status(row)} for row in listed(c, chosen)]


def _status(row: Plain) -> str:
    if row["ended_at_ms"] is not None:
        return "ended"
    if row["lease_until_ms"] is not None:
        return "running"
    return "resting" if row["ready_at_ms"] is None else "ready"


def entries(c: sa.Connection, session_id: str, *, after_n: int = -1, limit: int) -> list[Plain]:
    """List a transcript from the entry after *after_n* on.

    ``message`` has ``role``, ``text``, ``calls`` (``id``, ``name``, ``arguments``), ``call_id``.
    """
    chosen = sa.select(ENTRY).where(ENTRY.c.session_id == session_id, ENTRY.c.n > after_n)
    return [_entry(row) for row in c.execute(chosen.order_by(ENTRY.c.n).limit(limit)).mappings()]


def _entry(row: sa.RowMapping) -> Plain:
    message = decode(row["message_json"])
    shown: dict[str, Any] = {
        "role": message.role.value,
        "text": message.text,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.calls
        ],
        "call_id": message.call_id,
    }
    facts = plain({key: value for key, value in row.items() if key != "message_json"})
    return {**facts, "message": shown}


# ------------------------------------------------------------------ people, devices, sources
def sources(c: sa.Connection) -> list[Plain]:
    """List the sources by name: state, why, and when each was last heard."""
    return listed(c, sa.select(SOURCE).order_by(SOURCE.c.name))
