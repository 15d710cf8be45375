"""Views of routing: open work as the router sees it, and what it should know of a trigger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from upright.api import Code
from upright.core.mandate import Trust, taint
from upright.core.trigger import StoredTrigger
from upright.core.work import WorkItem
from upright.store import codec, intake, outbox, persons, relations, succession, threads
from upright.store.plain import Plain
from upright.store.tables import SESSION, TRIGGER, WORK
from upright.store.unit import Connection

GOAL_CHARS: Final = 200


def open_work(c: Connection, limit: int) -> list[Plain]:
    """List open items, the last changed first: id, goal, state, thread, relations; no details."""
    rows = c.execute(
        sa.select(WORK.c.id, WORK.c.goal, WORK.c.state, WORK.c.thread_id)
        .where(WORK.c.state.not_in(succession.ENDED))
        .order_by(WORK.c.changed_at_ms.desc(), WORK.c.id.desc())
        .limit(limit)
    )
    return [
        {
            "id": row.id,
            "goal": row.goal[:GOAL_CHARS],
            "state": row.state,
            "thread": row.thread_id,
            "relations": _relations(c, row.id),
        }
        for row in rows
    ]


def ended(c: Connection, limit: int) -> list[Plain]:
    """List items that are over, the last first: id, goal, state, thread, and their code."""
    rows = c.execute(
        sa.select(WORK.c.id, WORK.c.goal, WORK.c.state, WORK.c.thread_id, WORK.c.code_json)
        .where(WORK.c.state.in_(succession.ENDED))
        .order_by(WORK.c.changed_at_ms.desc(), WORK.c.id.desc())
        .limit(limit)
    )
    return [
        {
            "id": row.id,
            "goal": row.goal[:GOAL_CHARS],
            "state": row.state,
            "thread": row.thread_id,
            **_code(codec.CODE.load(row.code_json)),
        }
        for row in rows
    ]


def outcome(c: Connection, item: WorkItem) -> Plain:
    """Return what came of an item: its evidence, and the links of what it is about and made."""
    opening = intake.read(c, item.trigger)
    sent = [one for one in outbox.of_work(c, item.id) if one.receipt_id]
    return {
        "work": item.id,
        "goal": item.goal,
        "state": item.state.value,
        "reason": item.reason,
        **_code(item.code),
        "evidence": [f"{one.criterion}: {one.proof}" for one in item.evidence],
        "visible": [{"effect": one.id, "url": one.receipt_url} for one in sent],
        "links": list(opening.trigger.context.links) if opening else [],
    }


def taint_of(c: Connection, session: str) -> Trust:
    """Return how far a session is trusted by what it has read."""
    return Trust(c.scalar(sa.select(SESSION.c.taint).where(SESSION.c.id == session)) or 0)


def trust_of_goals(c: Connection, items: Sequence[str]) -> Trust:
    """Return how far the goals of items are trusted: as the least of those who asked for them."""
    rows = c.scalars(sa.select(WORK.c.mandate_json).where(WORK.c.id.in_(items)))
    return taint(codec.MANDATE.load(row).trust for row in rows)


def _code(code: Code | None) -> Plain:
    if code is None:
        return {}
    known = {"repository": code.repository, "branch": code.branch, "number": code.number}
    return {"code": {key: value for key, value in known.items() if value}}


def _relations(c: Connection, item: str) -> list[str]:
    """Say what an item is of others, from its side."""
    return [f"{one.kind} {one.other}" for one in relations.of(c, item) if one.work == item]


def hints(c: Connection, triggers: Sequence[StoredTrigger]) -> dict[str, str]:
    """Say by trigger what the router should know of it, in ids alone.

    That is which item of its thread is over, who follows it, and what its person has open on
    other threads (B6.6, B6.11). Nothing of it comes from a text.
    """
    return {one.id: hint for one in triggers if (hint := _hint(c, one))}


def _hint(c: Connection, stored: StoredTrigger) -> str:
    around = (stored.thread, *threads.linked(c, stored.thread))
    told = []
    live = _followed_by(c, stored)
    if live:
        told.append(f"followed by {', '.join(live)}")
    before = succession.last_over(c, around)
    if before is not None and not live:
        told.append(f"{before.work} of this thread is {before.state}")
    person = c.scalar(sa.select(TRIGGER.c.person).where(TRIGGER.c.id == stored.id)) or ""
    elsewhere = persons.open_elsewhere(c, person, stored.thread)
    if elsewhere:
        items = ", ".join(f"{item} ({thread})" for item, thread in elsewhere)
        told.append(f"the same person's open work: {items}")
    return "; ".join(told)


def _followed_by(c: Connection, stored: StoredTrigger) -> list[str]:
    followers = threads.followers(c, stored.thread)
    items = sa.select(SESSION.c.work_id).where(SESSION.c.id.in_(followers))
    return sorted(str(item) for item in c.scalars(items) if item)
