"""Credential: what a request shows of itself, and whether it still holds, asked anew each time."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from upright.engine.clock import now_ms
from upright.store import accounts, signins, tokens
from upright.store.accounts import Account
from upright.store.signins import SignIn
from upright.store.tokens import Token
from upright.store.unit import Connection
from upright.web.doors import Doors
from upright.web.principal import LOCAL, PRINCIPAL, Principal, Via
from upright.web.problems import PARTS

MAX_SECRET: Final = 200
COOKIE: Final = "upright"
SECURE_COOKIE: Final = "__Host-upright"
"""With this beginning a browser takes it from this very host alone, by https."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What was shown: a bearer's secret, or a browser's cookie."""

    via: Via
    secret: str


CREDENTIAL: Final = web.RequestKey("credential", Credential)
SIGN_IN: Final = web.RequestKey("sign_in", SignIn)
TOKEN: Final = web.RequestKey("token", Token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Whose a credential is; ``sign_in`` or ``token`` is the row behind it."""

    principal: Principal
    sign_in: SignIn | None = None
    token: Token | None = None


def cookie_name(doors: Doors) -> str:
    """Return the name of the cookie that browsers are known by."""
    return SECURE_COOKIE if doors.terms.secure else COOKIE


def shown(request: web.Request) -> Credential | None:
    """Read what a request shows; None: nothing. A header goes before a cookie."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme:
        usable = scheme.lower() == "bearer" and len(secret) <= MAX_SECRET and secret.isascii()
        return Credential(Via.API, secret.strip() if usable else "")
    cookie = request.cookies.get(cookie_name(request.app[PARTS].doors), "")
    if not cookie:
        return None
    return Credential(Via.SESSION, cookie[:MAX_SECRET] if cookie.isascii() else "?")  # nobody's


def is_local(request: web.Request, credential: Credential) -> bool:
    """Say whether this is the hub's own api.token, in constant time."""
    token = request.app[PARTS].token.reveal()
    right = hmac.compare_digest(credential.secret.encode(), token.encode())
    return right and credential.via is Via.API


async def find(request: web.Request, credential: Credential) -> Found | None:
    """Find who this is, now; None: it is nobody's, or not any more."""
    if is_local(request, credential):
        return Found(principal=LOCAL)
    parts = request.app[PARTS]
    at, idle_ms = now_ms(parts.clock), parts.doors.terms.idle_ms
    if credential.via is Via.SESSION:
        return await parts.store.read(lambda c: _by_cookie(c, credential.secret, at, idle_ms))
    if not tokens.is_one(credential.secret):
        return None
    return await parts.store.read(lambda c: _by_token(c, credential.secret, at))


async def is_ended(request: web.Request, credential: Credential) -> bool:
    """Say whether a credential that holds no more was somebody's token."""
    secret = credential.secret
    if not tokens.is_one(secret):
        return False
    return await request.app[PARTS].store.read(lambda c: tokens.was_one(c, secret))


def _by_cookie(c: Connection, cookie: str, at: int, idle_ms: int) -> Found | None:
    sign_in = signins.standing(c, cookie, at, idle_ms)
    account = _usable(c, sign_in.account) if sign_in is not None else None
    if account is None:
        return None
    return Found(principal=Principal.of(account, Via.SESSION), sign_in=sign_in)


def _by_token(c: Connection, secret: str, at: int) -> Found | None:
    token = tokens.holding(c, secret, at)
    account = _usable(c, token.account) if token is not None else None
    if token is None or account is None:
        return None
    return Found(principal=Principal.of(account, Via.API, token.scopes), token=token)


def _usable(c: Connection, account: str) -> Account | None:
    found = accounts.read(c, account)
    return found if found is not None and not found.revoked else None


async def note_use(request: web.Request, found: Found) -> None:
    """Note that a credential was used, now and then."""
    parts = request.app[PARTS]
    sign_in, token, units = found.sign_in, found.token, parts.doors.units
    if sign_in is not None and signins.is_due(sign_in, now_ms(parts.clock)):
        await units.write(lambda u: signins.seen(u, sign_in.id))
    elif token is not None and tokens.is_due(token, now_ms(parts.clock)):
        await units.write(lambda u: tokens.used(u, token.id))


async def still_in(request: web.Request) -> bool:
    """Say whether who asked may still be answered as before: a long stream asks this often.

    A role that was lowered ends it, too: the reader comes again, and is judged anew.
    """
    found = await find(request, request[CREDENTIAL])
    return found is not None and found.principal == request[PRINCIPAL]
