"""Why: the whole path of one trigger, from intake to its effects, with times and cost."""

from __future__ import annotations

import json
from collections.abc import Collection

import sqlalchemy as sa

from upright.core.transcript import decode
from upright.store import costs, memories, views, views_work
from upright.store.plain import Plain, columns, listed, one
from upright.store.tables import ENTRY, EVENT, JOB, LEDGER, MEMORY, OUTBOX, TRIGGER, TURN


def why(c: sa.Connection, trigger_id: str) -> Plain:
    """Follow a trigger through its deliveries, the turns that took it, and what those did.

    Keys: ``trigger``, ``deliveries``, ``turns`` (each with its ``costs``), ``jobs``, ``outbox``
    (with receipts), ``memory`` (what the router was shown with it, B5.4), ``events`` (all of it in
    the order in which it happened), ``costs`` (the sum).

    Raises:
        UnknownIdError: there is no such trigger.
    """
    found = one(c, TRIGGER, trigger_id)
    delivered = views.deliveries(c, trigger_id)
    turns = [row["turn_id"] for row in delivered if row["turn_id"]]
    jobs = views_work.jobs_of(c, JOB.c.id.in_(_jobs(c, turns)))
    mine = OUTBOX.c.trigger_id == trigger_id
    outbox = views_work.outbox_of(c, sa.or_(mine, OUTBOX.c.id.in_(_seen(c, turns, "outbox_id"))))
    return {
        "trigger": {key: value for key, value in found.items() if key != "body"},
        "deliveries": delivered,
        "turns": _turns(c, turns),
        "jobs": jobs,
        "outbox": outbox,
        "events": _events(c, trigger_id, turns=turns, jobs=jobs, outbox=outbox),
        "memory": _memory(c, trigger_id),
        "costs": costs.total(c, LEDGER.c.turn_id.in_(turns)),
    }


def _turns(c: sa.Connection, turns: Collection[str]) -> list[Plain]:
    by_turn = {
        row["turn_id"]: row for row in costs.by(c, LEDGER.c.turn_id, LEDGER.c.turn_id.in_(turns))
    }
    chosen = sa.select(TURN).where(TURN.c.id.in_(turns))
    nothing = costs.total(c, sa.false())
    return [
        {**turn, "costs": {k: by_turn.get(turn["id"], nothing)[k] for k in nothing}}
        for turn in listed(c, chosen.order_by(TURN.c.started_at_ms, TURN.c.id))
    ]


def _jobs(c: sa.Connection, turns: Collection[str]) -> set[str]:
    """Find the jobs of turns: by their trail, and by the calls in their messages."""
    chosen = sa.select(ENTRY.c.session_id, ENTRY.c.message_json).where(ENTRY.c.turn_id.in_(turns))
    called = [
        (row.session_id, call.id)
        for row in c.execute(chosen)
        for call in decode(row.message_json).calls
    ]
    sessions, calls = {session for session, _ in called}, {call for _, call in called}
    made = sa.select(JOB.c.id).where(JOB.c.session_id.in_(sessions), JOB.c.call_id.in_(calls))
    return {*c.scalars(made), *_seen(c, turns, "job_id")}


def _seen(c: sa.Connection, turns: Collection[str], column: str) -> set[str]:
    chosen = sa.select(EVENT.c[column]).where(EVENT.c.turn_id.in_(turns))
    return set(c.scalars(chosen.where(EVENT.c[column].is_not(None))))


def _memory(c: sa.Connection, trigger_id: str) -> list[Plain]:
    """Read the memories that the router was shown with a trigger, by their trail."""
    shown = sa.select(EVENT.c.data_json).where(
        EVENT.c.trigger_id == trigger_id, EVENT.c.stop == memories.USED
    )
    ids = {one for text in c.scalars(shown) for one in json.loads(text)["memory"]}
    return listed(c, sa.select(MEMORY).where(MEMORY.c.id.in_(ids)).order_by(MEMORY.c.id))


def _events(
    c: sa.Connection,
    trigger_id: str,
    *,
    turns: Collection[str],
    jobs: Collection[Plain],
    outbox: Collection[Plain],
) -> list[Plain]:
    about = sa.or_(
        EVENT.c.trigger_id == trigger_id,
        EVENT.c.turn_id.in_(turns),
        EVENT.c.job_id.in_([job["id"] for job in jobs]),
        EVENT.c.outbox_id.in_([item["id"] for item in outbox]),
    )
    shown = columns(EVENT, without=["xact"])
    return listed(c, sa.select(*shown).where(about).order_by(EVENT.c.seq))
