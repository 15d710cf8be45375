"""Spoken answers: followed in the transaction that stores the message, as the API would (B14.3).

Who answers is the person to whom this very source's id belongs; an id of every source is not
enough, since ids of one service can be had in another. What can't be followed changes nothing and
gets one reply that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind, EffectClass
from upright.core import spoken
from upright.core.errors import CoreError
from upright.core.ids import SessionId
from upright.core.request import RequestKind, RequestState
from upright.core.spoken import Spoken, Word
from upright.core.trigger import People
from upright.store import approvers, audit_trail, outbox, people, privacy, requests
from upright.store.acting import Deed
from upright.store.answering import Followed
from upright.store.arrivals import Draft
from upright.store.errors import (
    AmbiguousIdError,
    NotNowError,
    NotSeenError,
    StoreError,
    UnknownIdError,
)
from upright.store.requests import Asked
from upright.store.resolve import resolve
from upright.store.tables import REQUEST
from upright.store.unit import Unit

_DONE: Final = {Word.APPROVE: "Approved", Word.DENY: "Denied", Word.ANSWER: "Answered"}
_KINDS: Final = {
    Word.APPROVE: RequestKind.APPROVAL,
    Word.DENY: RequestKind.APPROVAL,
    Word.ANSWER: RequestKind.QUESTION,
}
_REFUSED: Final = (NotNowError, UnknownIdError, AmbiguousIdError, CoreError)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """What to say, of which request, and how it ended for the audit trail."""

    told: str
    request: str
    work: str | None = None
    woke: SessionId | None = None
    outcome: str = audit_trail.DONE


def follow(u: Unit, draft: Draft, known: People) -> Followed | None:
    """Do what a message says, if it is an answer of somebody who may give one; None: it is text."""
    said, who = spoken.heard(draft.trigger), _person(u, draft, known)
    if said is None or not who:
        return None
    theirs = replace(u, by=who)
    done = _settle(theirs, draft, said)
    deed = Deed(
        who=who,
        account="",
        via="chat",
        action=f"requests.{said.word}",
        object=f"{done.request} {draft.id}",
        origin=f"{draft.source}:{draft.who.actor.id}",
    )
    audit_trail.add(theirs, deed, done.outcome)
    _reply(theirs, draft, done)
    return Followed(reason=f"an answer by {who} in chat: {done.told}", woke=done.woke)


def _person(u: Unit, draft: Draft, known: People) -> str:
    """Return whose id of this source it is, if that is an operator; empty else."""
    person = known.by_id.get(f"{draft.source}:{draft.who.actor.id}")
    if person is None or person.kind is not ActorKind.OPERATOR:
        return ""
    return person.name if approvers.may_answer(u.c, person.name) else ""


def _settle(u: Unit, draft: Draft, said: Spoken) -> _Settled:
    """Decide as the API does; a refusal takes back whatever was begun."""
    try:
        if draft.listed or spoken.is_late(draft.trigger):
            raise NotNowError(said.request, "this came late, by catching up: say it again")
        asked = requests.read(u.c, _named(u, said.request))
        woke = u.attempt(lambda: _decide(u, said, asked))
    except _REFUSED as error:
        told = f"Nothing was decided. {_why(u, said, error)}"
        return _Settled(told=told, request=said.request, outcome=error.code)
    told = f"{_DONE[said.word]}: {asked.id}"
    return _Settled(told=told, request=asked.id, work=asked.work, woke=woke)


def _named(u: Unit, beginning: str) -> str:
    """Find the one request that begins so; what is private to others is not there."""
    return resolve(u.c, beginning, privacy.hidden(u.c, u.by)).id


def _decide(u: Unit, said: Spoken, asked: Asked) -> SessionId | None:
    if asked.state is RequestState.ASKED and asked.kind is not _KINDS[said.word]:
        why = f"this is a request of the kind {asked.kind.value}: `{said.word}` is not for it here"
        raise NotNowError(asked.id, f"{why}; see `upright requests show {asked.id}`")
    match said.word:
        case Word.APPROVE:
            return people.decide(u, asked.id, u.by, approve=True, digest=said.digest)
        case Word.DENY:
            return people.decide(u, asked.id, u.by, approve=False)
        case Word.ANSWER if said.text:
            return people.answer(u, asked.id, said.text, u.by)
        case Word.ANSWER:
            raise NotNowError(asked.id, "say the answer behind the id")


def _why(u: Unit, said: Spoken, error: StoreError | CoreError) -> str:
    """Say why nothing was decided; of what is not theirs to see, no more than that it isn't."""
    match error:
        case UnknownIdError():
            return f"There is no request {said.request}."
        case AmbiguousIdError():
            return f"Several requests begin with {said.request}: write more of its id."
        case NotSeenError() if said.digest:
            return f"{error.identifier} is for an effect with another digest: look at it again."
        case NotSeenError():
            return f"Write the digest of what you looked at: approve {error.identifier} DIGEST"
        case NotNowError():
            return f"{error}."
        case _:
            return _settled_by(u, said)


def _settled_by(u: Unit, said: Spoken) -> str:
    row = u.c.execute(sa.select(REQUEST).where(REQUEST.c.id == _named(u, said.request))).one()
    by = f" by {row.answered_by}" if row.answered_by else ""
    return f"{row.id} is {row.state} already{by}."


def _reply(u: Unit, draft: Draft, done: _Settled) -> None:
    """Say it in the same thread, once; nobody's session hears of it."""
    to = draft.trigger.context.reply_to
    if to is None:
        return
    outbox.put(
        u,
        outbox.Draft(
            session="",
            work=done.work,
            trigger=draft.id,
            effect_class=EffectClass.REPLY,
            destination=to,
            text=done.told,
            idempotency_key=f"answer:{draft.id}",
            life_ms=u.terms.life_ms(EffectClass.REPLY),
        ),
    )
