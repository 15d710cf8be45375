"""Hooks: a signed webhook comes in; the answer of success is given after the commit (B2.1)."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.api import Answered, InboundRequest
from upright.web.bodies import read_capped
from upright.web.described import Described, described
from upright.web.plain import answer
from upright.web.problems import PARTS, ProblemError, translate
from upright.web.schemas import TEXT, TRUTH, array, thing

_TAKEN: Final = thing(triggers=array(thing(id=TEXT, duplicate=TRUTH)))
REFUSED: Final = web.AppKey("refused", Counter[tuple[str, str]])
"""How many requests of each source were refused, by code; sources that exist only."""


@described(
    Described(
        gives=_TAKEN, statuses=(200, 202), takes_bytes=True, problems=(401, 403, 404, 429, 503)
    )
)
async def receive(request: web.Request) -> web.StreamResponse:
    """Take a webhook in: 202 with the new ids; 200 when nothing was new.

    Where the connector has an answer of its own, that is given, with 200.
    """
    parts, source = request.app[PARTS], request.match_info["source"]
    capabilities = parts.hooks.capabilities(source)
    if capabilities is None:
        detail = f"no source is called {source!r}"
        raise ProblemError(HTTPStatus.NOT_FOUND, "source.unknown", detail)
    try:
        body = await read_capped(request, capabilities.max_body_bytes)
        return await _take_in(request, source, body)
    except Exception as error:
        request.app[REFUSED][source, translate(error, request).code] += 1
        raise


async def _take_in(request: web.Request, source: str, body: bytes) -> web.StreamResponse:
    parts = request.app[PARTS]
    headers = {name.lower(): value for name, value in request.headers.items()}
    inbound = InboundRequest(
        headers=headers, body=body, remote=request.remote or "", query=dict(request.query)
    )
    triggers = await parts.hooks.receive(source, inbound)
    accepted = await parts.accept(source, triggers) if triggers else ()
    if isinstance(triggers, Answered):
        return web.Response(text=triggers.text, content_type=triggers.content_type)
    is_new = any(not each.duplicate for each in accepted)
    said = [{"id": each.id, "duplicate": each.duplicate} for each in accepted]
    return answer({"triggers": said}, HTTPStatus.ACCEPTED if is_new else HTTPStatus.OK)
