"""People as the hub hears them: a word to a session, an answer, a decision; first answer wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from upright.api import Actor, ActorKind, Channel
from upright.core import work as machine
from upright.core.ids import DeviceId, SessionId, ThreadId, TriggerId
from upright.core.request import RequestKind, RequestState, names
from upright.core.strategy import OPERATOR_INTERRUPT, OPERATOR_MESSAGE, OPERATOR_QUESTION
from upright.core.wait import WaitKind, Wake
from upright.core.work import WorkState
from upright.store import (
    approvals,
    device_requests,
    intake,
    outbox,
    oversight,
    requests,
    threads,
    unheld,
    waits,
    work,
)
from upright.store.errors import NotNowError, NotSeenError, UnknownIdError
from upright.store.requests import Asked
from upright.store.tables import SESSION
from upright.store.unit import Unit

OPERATOR: Final = Actor(id="operator", name="operator", kind=ActorKind.OPERATOR)
_TITLES: Final = {
    OPERATOR_MESSAGE: "the operator says",
    OPERATOR_INTERRUPT: "the operator interrupts",
    OPERATOR_QUESTION: "the operator asks; answer in one message, then go on",
}


def say(u: Unit, session: str, text: str, kind: str = OPERATOR_MESSAGE) -> TriggerId:
    """Tell a live session something, as the operator; it is woken.

    *kind* says how it is meant: a message waits for the next safe point, an interrupt cuts the
    step under way short, a question is answered beside it (B9). A question unblocks nothing.

    Raises:
        UnknownIdError: there is no such session.
        NotNowError: it has ended; or its item is blocked, and this is a question.
    """
    row = u.c.execute(sa.select(SESSION).where(SESSION.c.id == session)).one_or_none()
    if row is None:
        raise UnknownIdError(session)
    if row.ended_at_ms is not None:
        raise NotNowError(session, "the session has ended; nobody listens there any more")
    notice = intake.Notice(
        kind=kind,
        channel=Channel.OPERATOR,
        title=_TITLES[kind],
        text=text,
        actor=_actor(u),
    )
    if row.work_id is not None and kind != OPERATOR_QUESTION:
        _unblock(u, row.work_id)
    elif row.work_id is not None and work.read(u.c, row.work_id).state is WorkState.BLOCKED:
        raise NotNowError(session, "it is blocked: answer what it asks, or say something to it")
    return intake.notify(u, session, _thread(u, row.work_id, session), notice)


def answer(u: Unit, request: str, text: str, by: str) -> SessionId | None:
    """Answer a question; the session that asked is woken with the answer.

    To a completing item's evidence an answer is a no, with a reason: the item is sent back.

    Raises:
        UnknownIdError: there is no such request.
        NotNowError: it is an approval or a pairing, not a question; or its time has passed.
        IllegalMoveError: it is settled already.
    """
    asked = requests.read(u.c, request)
    if asked.kind is RequestKind.ACCEPTANCE:
        return oversight.settle(u, asked, by, yes=False, text=text)
    if asked.kind is not RequestKind.QUESTION:
        raise NotNowError(request, "this is no question: approve or deny it")
    requests.answer(u, asked, text, by)
    if unheld.answered(u, asked, text, by):
        return None  # whom it lets go on is in the queue
    title = f"the answer to {asked.id}"  # what was asked is a model's words, no person's
    return _tell(u, asked, "operator.answer", title=title, text=text)


def decide(u: Unit, request: str, by: str, *, approve: bool, digest: str = "") -> SessionId | None:
    """Approve or deny exactly the effect that was shown (B14.3).

    *digest* names what the person has looked at, see ``core.request.names``; a yes needs it.

    Raises:
        UnknownIdError: there is no such request.
        NotSeenError: nothing was looked at, or another effect.
        NotNowError: it is no approval, its time has passed, or the effect is not the one that
            was shown.
        IllegalMoveError: it is settled already, or the effect is.
    """
    asked = requests.read(u.c, request)
    if asked.kind is RequestKind.ACCEPTANCE:
        return oversight.settle(u, asked, by, yes=approve)
    stored = approvals.shown(u, asked)
    if (approve or digest) and not names(digest, asked.digest):
        raise NotSeenError(request, digest)
    verdict = "approved" if approve else "denied"
    requests.answer(u, asked, verdict, by)
    if approve:
        outbox.release(u, stored.id)
    else:
        outbox.discard(u, stored.id, "a person denied it")
    return _tell(u, asked, f"approval.{verdict}", title=f"{stored.id} was {verdict}", text="")


def edit(u: Unit, request: str, by: str, *, text: str, digest: str) -> SessionId | None:
    """Approve an effect with another text: the edit is kept, and exactly that is sent (B14.3).

    *digest* names the effect which the person has edited, as for :func:`decide`.

    Raises:
        UnknownIdError: there is no such request.
        NotSeenError, NotNowError: as for :func:`decide`; or there is no such text to send.
        IllegalMoveError: it is settled already.
    """
    asked = requests.read(u.c, request)
    if not names(digest, asked.digest):
        raise NotSeenError(request, digest)
    if asked.state is RequestState.ASKED:
        digest = approvals.edit(u, asked, text, by)
    return decide(u, request, by, approve=True, digest=digest)


def decide_device(u: Unit, request: str, by: str, *, approve: bool) -> DeviceId | None:
    """Approve or deny what is asked about a device; None: the request is of another kind.

    Raises:
        UnknownIdError: there is no such request.
        NotNowError: its time has passed, or the device is not the one that was shown.
        IllegalMoveError: it is settled already.
    """
    asked = requests.read(u.c, request)
    if asked.kind is not RequestKind.DEVICE:
        return None
    return device_requests.decide(u, asked, by, approve=approve)


def _tell(u: Unit, asked: Asked, kind: str, *, title: str, text: str) -> SessionId | None:
    if asked.session is None:
        return None
    if asked.work is not None:
        waits.settle(u.c, asked.work, Wake(kind=WaitKind.OPERATOR, ref=asked.id))
        _unblock(u, asked.work)
    notice = intake.Notice(
        kind=kind,
        channel=Channel.OPERATOR,
        title=title,
        text=text,
        actor=_actor(u),
        dedupe=(f"request:{asked.id}",),
        facts=(("request", asked.id),),
    )
    intake.notify(u, asked.session, _thread(u, asked.work, asked.session), notice)
    return SessionId(asked.session)


def _actor(u: Unit) -> Actor:
    """Return who speaks: the person whose account it was said with."""
    return replace(OPERATOR, id=u.by, name=u.by)


def _unblock(u: Unit, work_id: str) -> None:
    item = work.read(u.c, work_id)
    if item.state is WorkState.BLOCKED:
        work.move(u, item, machine.Unblocked(), reason="a person spoke")


def _thread(u: Unit, work_id: str | None, session: str) -> ThreadId:
    return work.read(u.c, work_id).thread if work_id else threads.own(u, session)
