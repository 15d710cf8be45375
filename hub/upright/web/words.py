"""Words: what an operator says to a session: for later, at once, or beside its work (B9)."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from upright.core.strategy import OPERATOR_INTERRUPT, OPERATOR_MESSAGE, OPERATOR_QUESTION
from upright.web.bodies import read_fields
from upright.web.described import does
from upright.web.plain import answer
from upright.web.problems import PARTS
from upright.web.reads import whole_id
from upright.web.schemas import TEXT, TRUTH, thing

_SAID: Final = thing(session=TEXT, trigger=TEXT, said=TRUTH)


@does(_SAID, "text")
async def say(request: web.Request) -> web.Response:
    """Tell a session something, at its next safe point: ``{"text": …}``."""
    return await _said(request, OPERATOR_MESSAGE)


@does(_SAID, "text")
async def interrupt(request: web.Request) -> web.Response:
    """Tell a session something at once; what it does is cut short: ``{"text": …}``."""
    return await _said(request, OPERATOR_INTERRUPT)


@does(_SAID, "text")
async def ask(request: web.Request) -> web.Response:
    """Ask a session something that it answers beside its work: ``{"text": …}``."""
    return await _said(request, OPERATOR_QUESTION)


async def _said(request: web.Request, kind: str) -> web.Response:
    session = await whole_id(request, "session")
    (text,) = await read_fields(request, "text")
    return answer(await request.app[PARTS].commands.say(session, text, kind))
