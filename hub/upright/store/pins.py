"""Pins: what a session must not forget when its transcript begins anew, read from the rows (B5.5).

Facts are ids, states, times and numbers; words are texts that somebody wrote, and how far those
are trusted. Texts from outside are neither: they are read again by their ids.
"""

from __future__ import annotations

import json
from typing import Final

import sqlalchemy as sa

from upright.core.compaction import Pins
from upright.core.job import Job
from upright.core.mandate import Trust
from upright.core.outbox import TERMINAL as SETTLED
from upright.core.request import RequestKind, RequestState
from upright.core.wait import Wait
from upright.core.work import WorkItem
from upright.store import jobs, outbox, relations, succession, waits
from upright.store.plain import Plain
from upright.store.tables import OUTBOX, REQUEST, WORK

_SETTLED: Final = tuple(state.value for state in SETTLED)


def of_worker(c: sa.Connection, item: WorkItem) -> Pins:
    """Return a worker's pins; its taint stays what it is, so the words need no trust of their own.

    ``open_waits`` and ``open_questions`` are verbatim, with what then.
    """
    asked = REQUEST.c.work_id == item.id
    facts = {
        "running_jobs": [_job(job) for job in jobs.of_session(c, item.session) if not job.over],
        "destinations": _destinations(item),
        "unsettled_effects": _effects(c, OUTBOX.c.session_id == item.session),
        "open_work": [_brief(child) for child in relations.live_children(c, item.id)],
    }
    words = {
        "goal": item.goal,
        "criteria": [*item.criteria],
        "open_waits": [_wait(wait) for wait in waits.open_of(c, item.id)],
        "open_questions": _questions(c, asked),
    }
    return Pins(facts={"item": item.id, "thread": item.thread, **facts}, words=words)


def of_router(c: sa.Connection, session: str, otherwise: Trust) -> Pins:
    """Return the router's pins: every open item's id, and its own open questions verbatim.

    The goal of an item is a text that was written after reading others: ``list_work`` has it, and
    taints. *otherwise* is the trust of a question of which nothing else is known.
    """
    live = sa.select(WORK.c.id, WORK.c.thread_id, WORK.c.state)
    rows = c.execute(live.where(WORK.c.state.not_in(succession.ENDED)).order_by(WORK.c.id)).all()
    questions = _questions(c, REQUEST.c.session_id == session, REQUEST.c.work_id.is_(None))
    facts = {
        "open_work": [{"id": r.id, "state": r.state, "thread": r.thread_id} for r in rows],
        "unsettled_effects": _effects(
            c, OUTBOX.c.session_id == session, OUTBOX.c.work_id.is_(None)
        ),
    }
    words = [one for one in questions if "question" in one]
    trust = min((_trust(c, one["id"], otherwise) for one in words), default=Trust.OPERATOR)
    return Pins(facts=facts, words={"open_questions": questions}, trust=trust)


def _trust(c: sa.Connection, request: str, otherwise: Trust) -> Trust:
    """Return how far a question is trusted: as far as its session was when it asked."""
    found = c.scalar(sa.select(REQUEST.c.trust).where(REQUEST.c.id == request))
    return otherwise if found is None else Trust(found)


def _job(job: Job) -> Plain:
    argv = json.loads(job.spec_json).get("argv") or [""]
    return {"id": job.id, "state": job.state.value, "device": job.device, "program": argv[0]}


def _wait(wait: Wait) -> Plain:
    return {
        "id": wait.id,
        "for": wait.kind.value,
        "ref": wait.ref,
        "why": wait.why,
        "look_first": wait.look_first,
        "until_ms": wait.deadline_ms,
        "then": wait.on_deadline.value,
    }


def _brief(item: WorkItem) -> Plain:
    return {"id": item.id, "state": item.state.value, "thread": item.thread}


def _destinations(item: WorkItem) -> list[Plain]:
    where = item.destination
    if where is None:
        return []
    return [{"source": where.source, "kind": where.kind, "address": dict(where.address)}]


def _effects(c: sa.Connection, *mine: sa.ColumnElement[bool]) -> list[Plain]:
    chosen = sa.select(OUTBOX.c.id).where(*mine, OUTBOX.c.state.not_in(_SETTLED))
    found = [outbox.read(c, one) for one in c.scalars(chosen.order_by(OUTBOX.c.id)).all()]
    return [{"id": one.id, "state": one.item.state.value} for one in found]


def _questions(c: sa.Connection, *mine: sa.ColumnElement[bool]) -> list[Plain]:
    """Return open questions verbatim; an approval's text is its effect's, which is read by id."""
    chosen = sa.select(REQUEST.c.id, REQUEST.c.kind, REQUEST.c.prompt, REQUEST.c.outbox_id)
    rows = c.execute(
        chosen.where(*mine, REQUEST.c.state == RequestState.ASKED.value).order_by(REQUEST.c.id)
    )
    return [
        {"id": row.id, "question": row.prompt}
        if row.kind == RequestKind.QUESTION.value
        else {"id": row.id, "kind": row.kind, "effect": row.outbox_id or ""}
        for row in rows
    ]
