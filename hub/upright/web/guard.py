"""Guard: who comes in. Every path has its line in ``needs``; nobody gets past it unasked.

A page of a stranger's site can make a browser send requests to this machine under a name that it
controls (DNS rebinding): such a request carries that name in its Host header, and is refused.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from upright.web.needs import NEEDS, OUTSIDE, VIEWER, Need, name_of
from upright.web.principal import LOCAL, PRINCIPAL, require
from upright.web.problems import PARTS, ProblemError

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let only those in who may come in."""
    need = _need(request)
    if not need.any_host:
        _check_host(request)
    if need.role is not None:
        _check_token(request)
        require(request, need.role, runs=need.runs)
    return await handler(request)


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


def _check_token(request: web.Request) -> None:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = request.app[PARTS].token.reveal()
    right = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not right:
        detail = "send the token of the hub's api.token file: Authorization: Bearer …"
        raise ProblemError(HTTPStatus.UNAUTHORIZED, "token.wrong", detail)
    request[PRINCIPAL] = LOCAL
