"""Principal: who a request is made by; the guard finds it, handlers ask what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.core.roles import ALL, Role, Scope, narrowed
from upright.store import accounts
from upright.store.accounts import Account
from upright.web.problems import ProblemError


class Via(StrEnum):
    """How somebody came in."""

    LOCAL = "local"  # with the hub's own api.token
    API = "token"  # with a token of their own
    SESSION = "session"  # with a cookie, from a browser


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. ``account`` is an id, ``name`` the person's in ``[people]``.

    ``role`` and ``exec`` (what lets commands run on devices) are what holds for this request:
    a token's scopes have been taken off already.
    """

    account: str
    name: str
    role: Role
    exec: bool
    scopes: frozenset[Scope]
    via: Via

    @classmethod
    def of(cls, account: Account, via: Via, scopes: frozenset[Scope] = ALL) -> Principal:
        """Make one of an account; a token's *scopes* leave less of its rights."""
        return cls(
            account=account.id,
            name=account.name,
            role=narrowed(account.role, scopes),
            exec=account.runs and Scope.EXEC in scopes,
            scopes=scopes,
            via=via,
        )


LOCAL: Final = Principal.of(accounts.LOCAL, Via.LOCAL)
"""Whoever can read the hub's api.token: the owner of the machine that it runs on."""

PRINCIPAL: Final = web.RequestKey("principal", Principal)


class ForbiddenError(ProblemError):
    """Somebody who is known may not do this; ``code`` is ``role.too_low`` or ``exec.missing``."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(HTTPStatus.FORBIDDEN, code, detail)


def principal_of(request: web.Request) -> Principal:
    """Return who asks.

    Raises:
        ProblemError: 401, nobody has signed in.
    """
    if PRINCIPAL not in request:
        detail = "sign in first, or send a token: Authorization: Bearer …"
        raise ProblemError(HTTPStatus.UNAUTHORIZED, "sign_in.needed", detail)
    return request[PRINCIPAL]


def require(request: web.Request, role: Role, *, runs: bool = False) -> Principal:
    """Return who asks, if they may do at least what *role* may, and let commands run if *runs*.

    Raises:
        ProblemError: 401, nobody has signed in.
        ForbiddenError: they may not.
    """
    who = principal_of(request)
    if who.role < role:
        detail = f"this needs the role {role.word}; {who.name} is here as {who.role.word}"
        raise ForbiddenError("role.too_low", detail)
    if runs and not who.exec:
        detail = f"this lets commands run on devices; {who.name} has no grant for that"
        raise ForbiddenError("exec.missing", detail)
    return who
