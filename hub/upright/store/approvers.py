"""Approvers: whether anybody is set up who could answer what only a person can (B14.4)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind
from upright.core.request import RequestKind, RequestState
from upright.core.roles import Role
from upright.store.events import About, record
from upright.store.tables import PERSON, REQUEST
from upright.store.tables_people import ACCOUNT
from upright.store.unit import Connection, Unit

NO_ROUTE: Final = (
    "nobody is set up who could answer: `upright people add NAME --kind operator`, "
    "or a person of kind operator in the configuration"
)
_ASKED: Final = REQUEST.c.state == RequestState.ASKED.value
_OF_PEOPLE: Final = REQUEST.c.kind.in_(
    [kind.value for kind in RequestKind if kind is not RequestKind.PAIRING]
)


def no_route(u: Unit) -> str:
    """Say why nobody would hear of a request; empty when somebody may."""
    return "" if u.terms.operators or _known(u.c) else NO_ROUTE


def _known(c: Connection) -> bool:
    able = [role.word for role in Role if role >= Role.OPERATOR]
    accounts = sa.select(ACCOUNT.c.id).where(
        ACCOUNT.c.revoked_at_ms.is_(None), ACCOUNT.c.role.in_(able)
    )
    persons = sa.select(PERSON.c.name).where(PERSON.c.kind == ActorKind.OPERATOR.value)
    return any(c.scalar(query.limit(1)) is not None for query in (accounts, persons))


def refresh(u: Unit) -> None:
    """Bring open requests up to date: somebody came who may answer, or the last one went."""
    now = no_route(u)
    stale = sa.and_(_ASKED, _OF_PEOPLE, REQUEST.c.no_route != now)
    for request in u.c.scalars(sa.select(REQUEST.c.id).where(stale)).all():
        u.c.execute(REQUEST.update().where(REQUEST.c.id == request).values(no_route=now))
        told(u, request, now)


def told(u: Unit, request: str, why: str) -> None:
    """Leave the notice: a request has nobody who would hear of it, or has somebody now."""
    stop = "request.no_route" if why else "request.route_found"
    record(u, stop, About(), {"request": request, "why": why})
