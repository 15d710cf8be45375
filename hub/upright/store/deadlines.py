"""Deadlines: what fires when nothing came (B11.3, B11.7): once, late rather than never."""

from __future__ import annotations

import json
from typing import Final

import sqlalchemy as sa

from upright.api import Channel
from upright.core import work as machine
from upright.core.errors import CoreError
from upright.core.ids import SessionId
from upright.core.outbox import OutboxState
from upright.core.wait import OnDeadline, Wait, WaitKind, WaitState, Wake
from upright.core.work import TERMINAL, WorkItem
from upright.store import (
    approvers,
    endpoints,
    holds,
    intake,
    outbox,
    requests,
    taints,
    waits,
    watches,
    work,
)
from upright.store.errors import UnknownIdError
from upright.store.events import About, record
from upright.store.requests import Asked
from upright.store.unit import Unit

_BATCH: Final = 200
_SOONEST: Final = sa.union_all(waits.EARLIEST, requests.EARLIEST, watches.EARLIEST).subquery()
_NEXT: Final = sa.select(sa.func.min(_SOONEST.c.at_ms))


def fire_due(u: Unit) -> list[SessionId]:
    """End every wait and request whose time has passed; return the sessions that are woken."""
    woken = [
        session
        for wait in waits.due(u.c, u.now_ms, _BATCH)
        if (session := _guarded(u, wait)) is not None
    ]
    approvers.refresh(u)
    for asked in requests.expire_due(u.c, u.now_ms):
        record(u, "request.expired", About(work_id=asked.work), {"request": asked.id})
        if (session := _expired(u, asked)) is not None:
            woken.append(session)
    return [*woken, *watches.fire_due(u)]


def _guarded(u: Unit, wait: Wait) -> SessionId | None:
    """Fire one wait; what can't be done with it is noted, and no other timer waits for that."""
    try:
        return u.attempt(lambda: _fire(u, wait))
    except (CoreError, UnknownIdError) as error:
        waits.expire(u.c, wait)  # its item is left without it, which the oracle tells people
        record(u, "wait.failed", About(work_id=wait.work), {"wait": wait.id, "why": str(error)})
        return None


def _fire(u: Unit, due: Wait) -> SessionId | None:
    wait = waits.read(u.c, due.id)
    if wait.state is not WaitState.OPEN:
        return None  # what fired before it in this batch has replaced it
    waits.expire(u.c, wait)
    item = work.read(u.c, wait.work)
    if item.state in TERMINAL:
        return None
    record(u, "wait.expired", About(work_id=item.id), {"wait": wait.id, "then": wait.on_deadline})
    match wait.on_deadline:
        case OnDeadline.LOOK | OnDeadline.WAKE:
            return _wake(u, item, wait)
        case OnDeadline.ASK:
            work.ask(u, item, f"Nothing came until the deadline: {wait.why}. What now?")
            return _wake(u, item, wait)
        case OnDeadline.REMIND:
            question = f"Still waiting for your answer: {wait.why}"
            work.block(u, item, question)
            return None


def _expired(u: Unit, asked: Asked) -> SessionId | None:
    """Drop what nobody approved; ask again what somebody can't go on without (B11.8)."""
    if asked.work is not None and asked.outbox is not None:
        waits.settle(u.c, asked.work, Wake(kind=WaitKind.OPERATOR, ref=asked.id))
    if asked.outbox is not None and outbox.read(u.c, asked.outbox).item.state is OutboxState.HELD:
        why = f"not approved: nobody answered {asked.id} in time{requests.again(asked)}"
        outbox.discard(u, asked.outbox, why)
        return SessionId(asked.session) if asked.session else None
    if asked.work is not None and not requests.is_open(u.c, asked.work):
        item = work.read(u.c, asked.work)
        if item.state in {machine.WorkState.BLOCKED, machine.WorkState.COMPLETING}:
            again = requests.Asking(
                prompt=asked.prompt, work=item.id, session=item.session, kind=asked.kind
            )
            requests.ask(u, again)
    if asked.work is None and asked.outbox is None and _holds_up(asked):
        again = requests.Asking(
            prompt=asked.prompt,
            session=asked.session,
            kind=asked.kind,
            subject_json=asked.subject_json,
        )
        requests.ask(u, again)
    return None


def _holds_up(asked: Asked) -> bool:
    """Say whether something rests until this is answered: the router, or an open breaker.

    Nothing else would ever tell of it again; what a budget holds goes on by its own time.
    """
    held = str(json.loads(asked.subject_json).get(holds.SUBJECT, ""))
    return asked.session is not None or held.startswith(endpoints.REF)


def _wake(u: Unit, item: WorkItem, wait: Wait) -> SessionId:
    notice = intake.Notice(
        kind="wait.deadline",
        channel=Channel.TIMER,
        title=f"the time is up: {wait.why}",
        text=wait.look_first,
        trust=taints.of_words(u.c, item.session),
        dedupe=(f"wait:{wait.id}",),
        facts=(("wait", wait.id), ("for", wait.kind.value)),
    )
    intake.notify(u, item.session, item.thread, notice)
    return item.session


def next_ms(c: sa.Connection) -> int | None:
    """Return when the next wait, request or watch is due."""
    found: int | None = c.scalar(_NEXT)
    return found
