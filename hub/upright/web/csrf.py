"""CSRF: a browser's request that changes something proves that one of the hub's pages made it.

Two checks, each enough by itself: the browser's own word on where the request comes from
(``Origin``, ``Sec-Fetch-Site``), and a token that only a page of ours could have read. The token
follows from the sign-in's cookie, so a new sign-in has another.
"""

from __future__ import annotations

import hashlib
import hmac
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from upright.web.bodies import FORM, read_form
from upright.web.credential import CREDENTIAL
from upright.web.principal import PRINCIPAL, Via
from upright.web.problems import PARTS, ProblemError

HEADER: Final = "X-CSRF-Token"
FIELD: Final = "csrf"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS: Final = frozenset({"same-origin", "none"})


def csrf_of(request: web.Request) -> str:
    """Return the token that a page puts into its forms; empty for who is not here by cookie."""
    if request[PRINCIPAL].via is not Via.SESSION:
        return ""
    return _token(request[CREDENTIAL].secret)


def _token(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


async def check(request: web.Request) -> None:
    """Refuse what another site may have made a browser send; a bearer's request is never that.

    A link to a page may stand anywhere. What a program reads (the API, its event stream) is for
    our own pages alone, also where a browser takes another port of this machine for the same site.

    Raises:
        ProblemError: 403.
    """
    if request[PRINCIPAL].via is not Via.SESSION:
        return
    looks = request.method in SAFE
    if not looks or "Origin" in request.headers or request.path.startswith("/v1/"):
        check_origin(request)
    if looks:
        return
    given = request.headers.get(HEADER, "")
    if not given and request.content_type == FORM:
        given = (await read_form(request)).get(FIELD, "")
    if not given.isascii() or not hmac.compare_digest(given.encode(), csrf_of(request).encode()):
        detail = f"send the page's token, as {HEADER} or in the form's field {FIELD}"
        raise ProblemError(HTTPStatus.FORBIDDEN, "csrf.token", detail)


def check_origin(request: web.Request) -> None:
    """Refuse a request that the browser says another site has made.

    Raises:
        ProblemError: 403.
    """
    site = request.headers.get("Sec-Fetch-Site", "none")
    origin = request.headers.get("Origin")
    ours = {_netloc(f"//{request.host}")} - {""}
    if public := urlsplit(request.app[PARTS].doors.terms.origin).netloc:
        ours.add(public)
    if site not in _OURS or (origin is not None and _netloc(origin) not in ours):
        detail = "another site has sent this; nothing was done"
        raise ProblemError(HTTPStatus.FORBIDDEN, "csrf.origin", detail)


def _netloc(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""
