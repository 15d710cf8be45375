"""Oversight: what an operator does to work that runs, waits or is stuck; one transaction each."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel
from upright.core import wait as waiting
from upright.core import work as machine
from upright.core.ids import SessionId, ThreadId
from upright.core.request import RequestState
from upright.core.wait import Wait, WaitState
from upright.core.work import WorkState
from upright.store import endings, intake, requests, waits, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.requests import Asked
from upright.store.tables import SESSION
from upright.store.unit import Unit

OPERATOR: Final = Actor(id="operator", name="operator", kind=ActorKind.OPERATOR)


# ------------------------------------------------------------------ items and sessions
def cancel(u: Unit, item: str, by: str) -> list[SessionId]:
    """Cancel a work item and its children; return whom that wakes.

    Raises:
        UnknownIdError: there is no such item.
        NotNowError: it is over already.
    """
    return endings.cancel(u, work.read(u.c, item), f"cancelled by {by}")


def unblock(u: Unit, item: str, by: str) -> SessionId:
    """Remove what blocks an item; its worker goes on.

    Raises:
        UnknownIdError: there is no such item.
        NotNowError: it is not blocked.
    """
    found = work.read(u.c, item)
    if found.state is not WorkState.BLOCKED:
        raise NotNowError(item, f"it is {found.state.value}, not blocked")
    requests.withdraw(u.c, work=item)
    work.move(u, found, machine.Unblocked(), reason=f"unblocked by {by}")
    _tell(u, found.session, found.thread, "work.unblocked", title="you are unblocked", text="")
    return found.session


def stop(u: Unit, session: str, by: str) -> list[SessionId]:
    """Stop a session for good: its item is cancelled, its jobs are stopped (B6.6).

    Raises:
        UnknownIdError: there is no such session.
        NotNowError: it has ended, or is the router's.
    """
    row = u.c.execute(sa.select(SESSION).where(SESSION.c.id == session)).one_or_none()
    if row is None:
        raise UnknownIdError(session)
    if row.ended_at_ms is not None:
        raise NotNowError(session, "it has ended already")
    if row.work_id is None:
        raise NotNowError(session, "the router is not stopped: it belongs to no work item")
    if work.read(u.c, row.work_id).state in machine.TERMINAL:
        return endings.close(u, session)
    return cancel(u, row.work_id, by)


# ------------------------------------------------------------------ waits
def wake(u: Unit, wait: str, by: str) -> SessionId:
    """End a wait as if what it is for had come.

    Raises:
        UnknownIdError: there is no such wait.
        NotNowError: it is not open.
    """
    found = _open(u, wait)
    waits.store(u.c, waiting.step(found, waiting.Matched()))
    return _resume(u, found, "wait.woken", f"{by} woke you from {found.id}")


def cancel_wait(u: Unit, wait: str, by: str) -> SessionId:
    """Take a wait away; its worker is woken, since nothing else might do so.

    Raises:
        UnknownIdError: there is no such wait.
        NotNowError: it is not open.
    """
    found = _open(u, wait)
    waits.store(u.c, waiting.step(found, waiting.Cancelled()))
    return _resume(u, found, "wait.cancelled", f"{by} says: no longer wait for {found.id}")


def _open(u: Unit, wait: str) -> Wait:
    found = waits.read(u.c, wait)
    if found.state is not WaitState.OPEN:
        raise NotNowError(wait, f"it is {found.state.value}, not open")
    return found


def _resume(u: Unit, wait: Wait, kind: str, title: str) -> SessionId:
    item = work.read(u.c, wait.work)
    record(u, kind, About(work_id=item.id, session_id=item.session), {"wait": wait.id})
    # why it waited, and what to look at first, are a model's words: they are on its card
    _tell(u, item.session, item.thread, kind, title=title, text="")
    return item.session


def _tell(
    u: Unit, session: SessionId, thread: ThreadId, kind: str, *, title: str, text: str
) -> None:
    notice = intake.Notice(
        kind=kind, channel=Channel.OPERATOR, title=title, text=text, actor=OPERATOR
    )
    intake.notify(u, session, thread, notice)


# ------------------------------------------------------------------ acceptance
def settle(u: Unit, asked: Asked, by: str, *, yes: bool, text: str = "") -> SessionId | None:
    """Accept a completing item's evidence, or send it back with a word (B11.11).

    Raises:
        NotNowError: the item is not completing any more, or its time has passed.
        IllegalMoveError: it is answered already.
    """
    if asked.work is None or asked.state is not RequestState.ASKED:
        raise NotNowError(asked.id, f"it is {asked.state.value} already")
    item = work.read(u.c, asked.work)
    if item.state is not WorkState.COMPLETING:
        raise NotNowError(asked.id, f"the item is {item.state.value}: nothing is to be accepted")
    requests.answer(u, asked, "accepted" if yes else text or "sent back", by)
    if yes:
        endings.completed(u, item)
        return next(iter(endings.close(u, item.session)), None)
    work.move(u, item, machine.Reopened(), reason="a person sent it back")
    title = "a person sent it back: it is not done"
    _tell(u, item.session, item.thread, "work.sent_back", title=title, text=text)
    return item.session
