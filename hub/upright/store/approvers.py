"""Approvers: whether anybody is set up who could answer what only a person can (B14.4)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.roles import Role
from upright.core.terms import Terms
from upright.store import accounts
from upright.store.events import About, record
from upright.store.tables import OUTBOX, PERSON, REQUEST
from upright.store.tables_people import ACCOUNT
from upright.store.unit import Connection, Unit

NO_ROUTE: Final = (
    "nobody is set up who could answer: `upright people add NAME --kind operator`, "
    "or a person of kind operator in the configuration"
)
_MOST_CHARS: Final = 300
NOTICE: Final = "notify:"
"""Before a request's id and a person's name: the key of the notice that tells them of it."""
_FAILED: Final = (OutboxState.DEAD.value, OutboxState.UNKNOWN.value, OutboxState.EXPIRED.value)
_ASKED: Final = REQUEST.c.state == RequestState.ASKED.value
_OF_PEOPLE: Final = REQUEST.c.kind.in_(
    [kind.value for kind in RequestKind if kind is not RequestKind.PAIRING]
)


def no_route(u: Unit) -> str:
    """Say why nobody would hear of a new request; empty when somebody may."""
    return _nobody(u.c, u.terms)


def _nobody(c: Connection, terms: Terms) -> str:
    return "" if terms.operators or _known(c) else NO_ROUTE


def _not_told(c: Connection, terms: Terms, request: str) -> str:
    """Say why none of those who should be told of a request was told; empty when somebody was.

    Who can sign in sees it in the workbench, whatever became of the notices.
    """
    if not terms.notify or _known(c) or terms.operators - set(terms.notify):
        return ""
    mine = OUTBOX.c.idempotency_key.startswith(f"{NOTICE}{request}:", autoescape=True)
    rows = c.execute(sa.select(OUTBOX.c.state, OUTBOX.c.reason).where(mine)).all()
    if not rows or any(row.state not in _FAILED for row in rows):
        return ""
    return f"nobody could be told in chat: {rows[0].reason}"[:_MOST_CHARS]


def _known(c: Connection) -> bool:
    able = [role.word for role in Role if role >= Role.OPERATOR]
    accounts = sa.select(ACCOUNT.c.id).where(
        ACCOUNT.c.revoked_at_ms.is_(None), ACCOUNT.c.role.in_(able)
    )
    persons = sa.select(PERSON.c.name).where(PERSON.c.kind == ActorKind.OPERATOR.value)
    return any(c.scalar(query.limit(1)) is not None for query in (accounts, persons))


def may_answer(c: Connection, who: str) -> bool:
    """Say whether an operator of this name may answer: no account of theirs says otherwise."""
    account = accounts.named(c, who)
    return account is None or (not account.revoked and account.role >= Role.OPERATOR)


def changed(c: Connection, terms: Terms) -> dict[str, str]:
    """Return the open requests whose ``no_route`` is not true any more, with what is."""
    nobody = _nobody(c, terms)
    open_ones = sa.select(REQUEST.c.id, REQUEST.c.no_route).where(_ASKED, _OF_PEOPLE)
    if not terms.notify:  # what holds for one holds for all
        open_ones = open_ones.where(REQUEST.c.no_route != nobody)
    rows = c.execute(open_ones).all()
    now = {row.id: nobody or _not_told(c, terms, row.id) for row in rows}
    return {row.id: now[row.id] for row in rows if now[row.id] != row.no_route}


def refresh(u: Unit) -> None:
    """Bring open requests up to date: somebody came who may answer, or the last one went."""
    for request, now in changed(u.c, u.terms).items():
        u.c.execute(REQUEST.update().where(REQUEST.c.id == request).values(no_route=now))
        told(u, request, now)


def told(u: Unit, request: str, why: str) -> None:
    """Leave the notice: a request has nobody who would hear of it, or has somebody now."""
    stop = "request.no_route" if why else "request.route_found"
    record(u, stop, About(), {"request": request, "why": why})
