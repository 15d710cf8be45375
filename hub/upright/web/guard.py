"""Guard: who may use the API. A bearer token, compared in constant time; and a known Host.

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

from upright.web.problems import PARTS, ProblemError

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
GUARDED: Final = ("/v1/", "/metrics")
OPEN: Final = frozenset({"/v1/device", "/metrics"})
"""Without a token: a device proves itself on its socket; the gauges tell nothing about anybody."""


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let only those in who may come in."""
    if request.path.startswith(GUARDED):
        _check_host(request)
        if request.path not in OPEN:
            _check_token(request)
    return await handler(request)


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
