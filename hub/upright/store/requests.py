"""Requests as rows: questions and approvals for people (pairings live with the devices)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core import request as machine
from upright.core.ids import RequestId
from upright.core.mandate import Trust
from upright.core.request import RequestKind, RequestState
from upright.store import approvers, codec, taints
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables import OUTBOX, REQUEST
from upright.store.unit import Unit

_LIFE_MS: Final = 90 * 24 * 3600 * 1000
EARLIEST: Final = sa.select(sa.func.min(REQUEST.c.expires_at_ms).label("at_ms")).where(
    REQUEST.c.state == RequestState.ASKED.value
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a person is asked, and for whom. An approval names the exact effect by its digest.

    ``subject_json`` is for whoever acts on the answer. What made the session ask, and what it had
    read, is found out when it is stored, unless it repeats what was asked before (``again``).
    """

    prompt: str
    work: str | None = None
    session: str | None = None
    kind: RequestKind = RequestKind.QUESTION
    outbox: str | None = None
    digest: str = ""
    subject_json: str = "{}"
    life_ms: int = _LIFE_MS
    again: Asked | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it is stored."""

    id: RequestId
    kind: RequestKind
    state: RequestState
    work: str | None
    session: str | None
    outbox: str | None
    prompt: str
    digest: str
    subject_json: str
    answer: str
    expires_at_ms: int
    trust: Trust | None
    cause: tuple[str, ...]
    taint: tuple[str, ...]


def ask(u: Unit, asking: Asking) -> RequestId:
    """Store a request; the same open question of the same item is asked once."""
    same = sa.and_(
        REQUEST.c.state == RequestState.ASKED.value,
        REQUEST.c.kind == asking.kind.value,
        REQUEST.c.work_id.is_not_distinct_from(asking.work),
        REQUEST.c.outbox_id.is_not_distinct_from(asking.outbox),
        REQUEST.c.prompt == asking.prompt,
    )
    existing = u.c.scalar(sa.select(REQUEST.c.id).where(same))
    if existing is not None:
        return RequestId(existing)
    made = RequestId(u.new_id("request"))
    no_route = approvers.no_route(u)
    u.c.execute(
        REQUEST.insert().values(
            id=made,
            kind=asking.kind.value,
            state=RequestState.ASKED.value,
            work_id=asking.work,
            session_id=asking.session,
            outbox_id=asking.outbox,
            prompt=asking.prompt,
            subject_json=asking.subject_json,
            digest=asking.digest,
            answer="",
            answered_by="",
            created_at_ms=u.now_ms,
            expires_at_ms=u.now_ms + asking.life_ms,
            no_route=no_route,
            **_grounds(u.c, asking),
        )
    )
    about = About(work_id=asking.work, session_id=asking.session, outbox_id=asking.outbox)
    record(u, f"{asking.kind.value}.asked", about, {"request": made})
    if no_route:
        approvers.told(u, made, no_route)
    return made


def _grounds(c: sa.Connection, asking: Asking) -> dict[str, object]:
    """Return the columns that say what made a session ask, and what it had read (B14.3)."""
    if asking.again is not None:
        before = asking.again
        trust, cause, taint, of = before.trust, before.cause, before.taint, before.id
    else:
        trust = taints.trust_of(c, asking.session) if asking.session else None
        session, of = asking.session or "", None
        taint = taints.what(c, session, trust) if trust is not None else ()
        cause = taints.cause(c, session)
        answers = c.scalar(sa.select(OUTBOX.c.trigger_id).where(OUTBOX.c.id == asking.outbox))
        cause = tuple(dict.fromkeys((*([answers] if answers else []), *cause)))
    return {
        "trust": None if trust is None else int(trust),
        "cause_json": codec.STRINGS.dump(cause),
        "taint_json": codec.STRINGS.dump(taint),
        "again_of": of,
    }


def read(c: sa.Connection, request: str) -> Asked:
    """Read a request; UnknownIdError when there is none."""
    row = c.execute(sa.select(REQUEST).where(REQUEST.c.id == request)).one_or_none()
    if row is None:
        raise UnknownIdError(request)
    return Asked(
        id=RequestId(row.id),
        kind=RequestKind(row.kind),
        state=RequestState(row.state),
        work=row.work_id,
        session=row.session_id,
        outbox=row.outbox_id,
        prompt=row.prompt,
        digest=row.digest,
        subject_json=row.subject_json,
        answer=row.answer,
        expires_at_ms=row.expires_at_ms,
        trust=None if row.trust is None else Trust(row.trust),
        cause=codec.STRINGS.load(row.cause_json),
        taint=codec.STRINGS.load(row.taint_json),
    )


def answer(u: Unit, asked: Asked, text: str, by: str) -> None:
    """Store the first answer of a person.

    Raises:
        IllegalMoveError: it is settled already; somebody else was faster.
        NotNowError: its time has passed, although perhaps nobody has noted that yet.
    """
    if asked.state is RequestState.EXPIRED or u.now_ms >= asked.expires_at_ms:
        raise NotNowError(asked.id, f"its time has passed, which is a no{again(asked)}")
    state = machine.step(asked.state, machine.Answered())
    still = sa.and_(REQUEST.c.id == asked.id, REQUEST.c.state == asked.state.value)
    values = {"state": state.value, "answer": text, "answered_by": by, "answered_at_ms": u.now_ms}
    if u.c.execute(REQUEST.update().where(still).values(**values)).rowcount != 1:
        machine.step(read(u.c, asked.id).state, machine.Answered())
    about = About(work_id=asked.work, session_id=asked.session, outbox_id=asked.outbox)
    record(u, f"{asked.kind.value}.answered", about, {"request": asked.id, "by": by})


def again(asked: Asked) -> str:
    """Say how what expired can be asked once more; empty for what can't."""
    is_approval = asked.kind is RequestKind.APPROVAL
    return f"; to ask once more: upright ask-again {asked.id}" if is_approval else ""


def withdraw(c: sa.Connection, *, work: str, prompt: str | None = None) -> None:
    """Withdraw the open requests of an item, all or the one with this text."""
    mine = sa.and_(REQUEST.c.work_id == work, REQUEST.c.state == RequestState.ASKED.value)
    if prompt is not None:
        mine = sa.and_(mine, REQUEST.c.prompt == prompt)
    c.execute(REQUEST.update().where(mine).values(state=RequestState.WITHDRAWN.value))


def expire_due(c: sa.Connection, now_ms: int) -> list[Asked]:
    """Expire what nobody answered in time; return it. Expiry is never a yes."""
    due = sa.and_(REQUEST.c.state == RequestState.ASKED.value, REQUEST.c.expires_at_ms <= now_ms)
    late = [read(c, one) for one in c.scalars(sa.select(REQUEST.c.id).where(due))]
    for asked in late:
        state = machine.step(asked.state, machine.TimePassed())
        c.execute(REQUEST.update().where(REQUEST.c.id == asked.id).values(state=state.value))
    return late


def is_open(c: sa.Connection, work: str) -> bool:
    """Say whether a person still has something to answer for this item."""
    mine = sa.and_(REQUEST.c.work_id == work, REQUEST.c.state == RequestState.ASKED.value)
    return c.scalar(sa.select(REQUEST.c.id).where(mine).limit(1)) is not None
