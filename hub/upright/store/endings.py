"""Endings: how a work item is over, and who hears of it: its parent, its session, its children."""

from __future__ import annotations

import json

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel
from upright.core import work as machine
from upright.core.ids import RequestId, SessionId
from upright.core.mandate import Trust
from upright.core.request import RequestKind
from upright.core.wait import WaitKind, Wake
from upright.core.work import TERMINAL, WorkItem
from upright.store import intake, jobs, outbox, relations, requests, waits, work
from upright.store.errors import NotNowError
from upright.store.tables import SESSION, TURN
from upright.store.unit import Unit


def completed(u: Unit, item: WorkItem) -> WorkItem:
    """Accept what an item gave as evidence; its parent is told. Its own turn ends its session."""
    moved = work.move(u, item, machine.Accepted())
    tell_parent(u, moved)
    return moved


def ask_acceptance(u: Unit, item: WorkItem) -> RequestId:
    """Ask a person to accept the evidence of a completing item (B11.11)."""
    proofs = "\n".join(f"- {one.criterion}: {one.proof}" for one in item.evidence)
    prompt = f"Is this done? {item.goal}\n\n{proofs}"
    asking = requests.Asking(
        prompt=prompt, work=item.id, session=item.session, kind=RequestKind.ACCEPTANCE
    )
    return requests.ask(u, asking)


def cancel(u: Unit, item: WorkItem, reason: str) -> list[SessionId]:
    """End an item for good, and its children: jobs are stopped, waits and questions withdrawn.

    Its session is closed whatever it does at the moment, and what it wanted to send and nobody
    has begun to send stays here. Returns who is woken by that.

    Raises:
        NotNowError: it is over already.
    """
    if item.state in TERMINAL:
        raise NotNowError(item.id, f"it is {item.state.value} already")
    for job in jobs.of_session(u.c, item.session):
        if not job.over:
            jobs.stop(u, job)
    moved = work.move(u, work.read(u.c, item.id), machine.Stopped(), reason=reason)
    woken = []
    for child in relations.live_children(u.c, item.id):
        woken += cancel(u, child, f"{item.id} was cancelled: {reason}"[:500])
    told = tell_parent(u, moved)
    closed = close(u, item.session)
    outbox.keep_back(u, item.id, f"{item.id} was cancelled: {reason}"[:500])
    return [*woken, *([told] if told else []), *closed]


def tell_parent(u: Unit, item: WorkItem) -> SessionId | None:
    """Tell the item that asked for this one how it ended, however that was (B11.2)."""
    above = relations.parent(u.c, item.id)
    if above is None or above.state in TERMINAL:
        return None
    wake = Wake(kind=WaitKind.SYSTEM, ref=relations.child_ref(item.id))
    waits.settle(u.c, above.id, wake)
    said = {
        "goal": item.goal,
        "state": item.state.value,
        "reason": item.reason,
        "evidence": [{"criterion": one.criterion, "proof": one.proof} for one in item.evidence],
    }
    read = u.c.scalar(sa.select(SESSION.c.taint).where(SESSION.c.id == item.session))
    notice = intake.Notice(
        kind=f"child.{item.state.value}",
        channel=Channel.JOB,
        title=f"{item.id} is {item.state.value}",
        text=json.dumps(said, ensure_ascii=False),
        actor=Actor(id=item.session, name="worker", kind=ActorKind.SYSTEM),
        trust=Trust(read) if read is not None else Trust.STRANGER,
        dedupe=(f"child:{item.id}",),
        facts=(("work", item.id), ("state", item.state.value)),
    )
    intake.notify(u, above.session, above.thread, notice)
    return above.session


def close(u: Unit, session: str) -> list[SessionId]:
    """End a session from outside: whoever runs it can write nothing more (B8.5).

    Its unread tail goes to the router, whose session is returned when that wakes it.
    """
    alive = sa.and_(SESSION.c.id == session, SESSION.c.ended_at_ms.is_(None))
    u.c.execute(
        SESSION.update()
        .where(alive)
        .values(
            ended_at_ms=u.now_ms,
            ready_at_ms=None,
            lease_until_ms=None,
            lease_epoch=SESSION.c.lease_epoch + 1,
        )
    )
    cut = sa.and_(TURN.c.session_id == session, TURN.c.ended_at_ms.is_(None))
    u.c.execute(TURN.update().where(cut).values(ended_at_ms=u.now_ms, ending="stopped"))
    return intake.fall_back(u, session)
