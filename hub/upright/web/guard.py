"""Guard: who comes in. Every path has its line in ``needs``; nobody gets past it unasked.

A page of a stranger's site can make a browser send requests to this machine under a name that it
controls (DNS rebinding): such a request carries that name in its Host header, and is refused.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from upright.core.roles import Scope
from upright.web import csrf, record
from upright.web.credential import (
    CREDENTIAL,
    SIGN_IN,
    TOKEN,
    Credential,
    Found,
    find,
    is_ended,
    is_local,
    note_use,
    shown,
)
from upright.web.needs import NEEDS, OUTSIDE, VIEWER, Need, name_of
from upright.web.principal import PRINCIPAL, Via, require
from upright.web.privacy import check_path
from upright.web.problems import PARTS, ProblemError
from upright.web.remote import remote_of

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
TOKENS_IN_URLS: Final = frozenset({"access_token", "token", "api_token", "api_key", "bearer"})
SIGN_IN_PAGE: Final = "/sign-in"


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let only those in who may come in."""
    need = _need(request)
    if not need.any_host:
        _check_host(request)
    if need.role is None:
        return await handler(request)
    _check_url(request)
    try:
        await _come_in(request)
    except ProblemError as error:
        if _is_page(request) and error.status == HTTPStatus.UNAUTHORIZED:
            page = f"{SIGN_IN_PAGE}?next={quote(request.path_qs)}"
            raise web.HTTPSeeOther(page) from error
        raise
    async with record.kept(request, need):
        require(request, need.role, runs=need.runs)
        _check_scope(request)
        await csrf.check(request)
        await check_path(request)
        return await handler(request)


def _check_scope(request: web.Request) -> None:
    """Refuse whatever changes something to a token that is for reading, also of one's own."""
    who = request[PRINCIPAL]
    if request.method not in csrf.SAFE and who.scopes <= {Scope.READ}:
        detail = "this token is for reading"
        raise ProblemError(HTTPStatus.FORBIDDEN, "scope.read", detail)


def _is_page(request: web.Request) -> bool:
    return request.method == "GET" and not request.path.startswith("/v1/")


def _need(request: web.Request) -> Need:
    name = name_of(request)
    if name is None:  # no such path, or not with this method: which there are is not for strangers
        return VIEWER if request.path.startswith("/v1/") else OUTSIDE
    need = NEEDS.get(name)
    if need is None:
        detail = f"nobody has said who may use {name}"
        raise ProblemError(HTTPStatus.FORBIDDEN, "need.unknown", detail)
    return need


def _check_host(request: web.Request) -> None:
    name = host_name(request.host)
    if name not in LOOPBACK | request.app[PARTS].hosts:
        detail = f"this hub is not called {name!r}; set hub.public_url if it should be"
        raise ProblemError(HTTPStatus.MISDIRECTED_REQUEST, "host.unknown", detail)


def host_name(header: str) -> str:
    """Return the name in a Host header, without port, in lower case; empty for nonsense."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _check_url(request: web.Request) -> None:
    """Refuse a secret in an address: it ends in histories and other people's logs."""
    if TOKENS_IN_URLS & request.query.keys():
        detail = "a token belongs in a header, never in an address: Authorization: Bearer …"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "token.in_url", detail)


async def _come_in(request: web.Request) -> None:
    """Find who asks, and put it into the request.

    Raises:
        ProblemError: 401, it is nobody; 429, this address was wrong too often.
    """
    credential = shown(request)
    if credential is None:
        detail = "sign in, or send a token: Authorization: Bearer …"
        raise ProblemError(HTTPStatus.UNAUTHORIZED, "sign_in.needed", detail)
    found = await _tried(request, credential)
    request[CREDENTIAL], request[PRINCIPAL] = credential, found.principal
    if found.sign_in is not None:
        request[SIGN_IN] = found.sign_in
    if found.token is not None:
        request[TOKEN] = found.token
    await note_use(request, found)


async def _tried(request: web.Request, credential: Credential) -> Found:
    """Find whose a credential is; wrong ones are counted, and too many stop all further tries."""
    failed = request.app[PARTS].doors.failed
    remote = remote_of(request, request.app[PARTS].doors.terms.proxies)
    guessed = credential.via is not Via.SESSION and not is_local(request, credential)
    if guessed and (wait_s := failed.wait_s(remote)) > 0:
        detail = "too many wrong tokens came from this address"
        raise ProblemError(429, "sign_in.too_many", detail, retry_after_s=wait_s)
    found = await find(request, credential)
    if found is not None:
        return found
    if credential.via is Via.SESSION:  # as a rule one that has ended: nobody guesses those
        detail = "this sign-in has ended; sign in again"
        raise ProblemError(HTTPStatus.UNAUTHORIZED, "sign_in.ended", detail)
    if await is_ended(request, credential):  # no guess: it would lock out all who share an address
        detail = "this token has ended, or was revoked; make another: upright token new NAME"
        raise ProblemError(HTTPStatus.UNAUTHORIZED, "token.ended", detail)
    failed.count(remote)
    detail = "send a token that holds, or the hub's api.token: Authorization: Bearer …"
    raise ProblemError(HTTPStatus.UNAUTHORIZED, "token.wrong", detail)
