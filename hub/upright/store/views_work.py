"""Work as it is shown: what it waits for, since when, until when, and what then (B11.9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

import sqlalchemy as sa

from upright.core.request import RequestState
from upright.core.retention import pruned_on
from upright.core.wait import WaitState
from upright.core.work import WorkState
from upright.store import costs
from upright.store.plain import Plain, columns, listed, one
from upright.store.tables import JOB, LEDGER, OUTBOX, RELATION, REQUEST, SESSION, THREAD, WAIT, WORK

MAX_LISTED: Final = 500


def work_list(
    c: sa.Connection, *, states: Collection[WorkState] = (), limit: int = MAX_LISTED
) -> list[Plain]:
    """List work items, the last changed first; no *states* means all of them.

    Each has ``thread_title``, its open ``waits`` and its open ``questions``.
    """
    heavy = ("mandate_json", "evidence_json", "plan_json", "destination_json")
    chosen = (
        sa.select(*columns(WORK, without=heavy), THREAD.c.title.label("thread_title"))
        .outerjoin(THREAD, THREAD.c.id == WORK.c.thread_id)
        .order_by(WORK.c.changed_at_ms.desc(), WORK.c.id.desc())
        .limit(limit)
    )
    if states:
        chosen = chosen.where(WORK.c.state.in_([state.value for state in states]))
    items = listed(c, chosen)
    ids = [item["id"] for item in items]
    waits = _by_work(
        waits_of(c, WAIT.c.work_id.in_(ids), WAIT.c.state == WaitState.OPEN.value),
    )
    asked = REQUEST.c.state == RequestState.ASKED.value
    questions = _by_work(_questions(c, REQUEST.c.work_id.in_(ids), asked))
    return [
        {**item, "waits": waits[item["id"]], "questions": questions[item["id"]]} for item in items
    ]


def work(c: sa.Connection, work_id: str) -> Plain:
    """Return an item whole, with ``session`` and ``costs``.

    ``waits``, ``jobs``, ``outbox``, ``questions`` and ``relations`` to other items are lists.

    Raises:
        UnknownIdError: there is none.
    """
    found = one(c, WORK, work_id)
    found["session"] = one(c, SESSION, found["session_id"])
    found["waits"] = waits_of(c, WAIT.c.work_id == work_id)
    found["jobs"] = jobs_of(c, JOB.c.work_id == work_id)
    found["outbox"] = outbox_of(c, OUTBOX.c.work_id == work_id)
    found["questions"] = _questions(c, REQUEST.c.work_id == work_id)
    found["relations"] = relations(c, work_id)
    found["costs"] = costs.total(c, LEDGER.c.work_id == work_id)
    return found


def relations(c: sa.Connection, work_id: str) -> list[Plain]:
    """List an item's relations, both ways, each with the other item's state and goal."""
    other = sa.case((RELATION.c.work_id == work_id, RELATION.c.other_id), else_=RELATION.c.work_id)
    chosen = (
        sa.select(RELATION, WORK.c.id.label("item"), WORK.c.state, WORK.c.goal)
        .join(WORK, WORK.c.id == other)
        .where(sa.or_(RELATION.c.work_id == work_id, RELATION.c.other_id == work_id))
    )
    return listed(c, chosen.order_by(RELATION.c.work_id, RELATION.c.kind))


def waits_of(c: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Plain]:
    """List waits, the open ones first: ``since_ms``, ``until_ms``, ``then``, and what for."""
    chosen = sa.select(
        WAIT.c.id,
        WAIT.c.work_id,
        WAIT.c.state,
        WAIT.c.kind,
        WAIT.c.ref,
        WAIT.c.why,
        WAIT.c.look_first,
        WAIT.c.created_at_ms.label("since_ms"),
        WAIT.c.deadline_ms.label("until_ms"),
        WAIT.c.on_deadline.label("then"),
    ).where(*where)
    is_closed = sa.case((WAIT.c.state == WaitState.OPEN.value, 0), else_=1)
    return listed(c, chosen.order_by(is_closed, WAIT.c.deadline_ms, WAIT.c.id))


def jobs_of(c: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Plain]:
    """List jobs in the order in which they were made; of the input only its size."""
    chosen = sa.select(JOB).where(*where)
    return listed(c, chosen.order_by(JOB.c.created_at_ms, JOB.c.id))


def job(c: sa.Connection, job_id: str) -> Plain:
    """Return one job.

    Raises:
        UnknownIdError: there is none.
    """
    found = one(c, JOB, job_id)
    found["output"] = pruned_on(found["pruned_at_ms"]) or "kept"
    return found


def outbox_of(c: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Plain]:
    """List outward effects in the order in which they were made, with their receipts."""
    chosen = sa.select(OUTBOX).where(*where)
    return listed(c, chosen.order_by(OUTBOX.c.created_at_ms, OUTBOX.c.id))


def _questions(c: sa.Connection, *where: sa.ColumnElement[bool]) -> list[Plain]:
    chosen = sa.select(REQUEST).where(*where)
    return listed(c, chosen.order_by(REQUEST.c.created_at_ms, REQUEST.c.id))


def _by_work(rows: Iterable[Plain]) -> defaultdict[str, list[Plain]]:
    grouped = defaultdict[str, list[Plain]](list)
    for row in rows:
        grouped[row["work_id"]].append(row)
    return grouped
