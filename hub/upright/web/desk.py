"""Desk: what people change of routing through the API: rules, people, who follows what."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.store import accounts
from upright.web.bodies import number, read_fields
from upright.web.described import does, reads, whole
from upright.web.granting import may_stand_for
from upright.web.plain import answer
from upright.web.principal import PRINCIPAL
from upright.web.problems import PARTS, ProblemError
from upright.web.reads import LISTED, MOST_LISTED, meant
from upright.web.schemas import ANY, TEXT, TRUTH, WHOLE, array, thing

_DIGITS: Final = 12
_RULES: Final = thing(
    number=WHOLE, text=TEXT, rules=array(thing(name=TEXT, verdict=TEXT, hits=WHOLE, built_in=TRUTH))
)


@reads(_RULES, whole("version"), problems=(404, 409))
async def rules(request: web.Request) -> web.Response:
    """Show the rules that hold, with their hits; ``?version=`` shows an earlier version."""
    wanted = number(request, "version", 0) or None
    return answer(await request.app[PARTS].desk.rules(wanted))


@reads(array(ANY), whole("limit"))
async def rules_history(request: web.Request) -> web.Response:
    """List versions of the rules, the newest first: ``?limit=``."""
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    return answer(await request.app[PARTS].desk.rules_history(limit))


@does(thing(number=WHOLE, rules=WHOLE, changed=TRUTH), "text", "base")
async def edit_rules(request: web.Request) -> web.Response:
    """Store a version: ``{"text": …, "base": …}``, the number of the one it was made from."""
    text, base = await read_fields(request, "text", "base")
    if not (base.isascii() and base.isdigit() and len(base) <= _DIGITS):
        detail = f"base is the number of a version, not {base[:40]!r}"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    return answer(await request.app[PARTS].desk.edit_rules(text, int(base)))


@reads(array(thing(name=TEXT, kind=TEXT)))
async def people(request: web.Request) -> web.Response:
    """List people with their ids."""
    return answer(await request.app[PARTS].desk.people())


@does(thing(name=TEXT, kind=TEXT), "name", "kind")
async def add_person(request: web.Request) -> web.Response:
    """Add a person: ``{"name": …, "kind": …}``."""
    name, kind = await read_fields(request, "name", "kind")
    return answer(await request.app[PARTS].desk.add_person(name, kind))


@does(thing(name=TEXT, id=TEXT), "name", "id")
async def link_person(request: web.Request) -> web.Response:
    """Say that an id is a person's: ``{"name": …, "id": …}``."""
    name, key = await read_fields(request, "name", "id")
    account = await request.app[PARTS].store.read(lambda c: accounts.named(c, name))
    if account is not None:  # whose id this is comes in, and speaks, as them
        may_stand_for(request[PRINCIPAL], account)
    return answer(await request.app[PARTS].desk.link_person(name, key))


@reads(array(thing(session_id=TEXT, thread_id=TEXT)))
async def follows(request: web.Request) -> web.Response:
    """List who follows which thread."""
    return answer(await request.app[PARTS].desk.follows())


@does(thing(session=TEXT, thread=TEXT, joined=TRUTH), "session", "thread")
async def follow(request: web.Request) -> web.Response:
    """Let a worker follow a thread: ``{"session": …, "thread": …}``."""
    session, thread = await _named(request)
    return answer(await request.app[PARTS].desk.follow(session, thread))


@does(thing(session=TEXT, thread=TEXT, left=TRUTH), "session", "thread")
async def unfollow(request: web.Request) -> web.Response:
    """Let a worker follow a thread no more: ``{"session": …, "thread": …}``."""
    session, thread = await _named(request)
    return answer(await request.app[PARTS].desk.unfollow(session, thread))


async def _named(request: web.Request) -> tuple[str, str]:
    """Return the ids that a session and a thread were named with, finished."""
    session, thread = await read_fields(request, "session", "thread")
    return (await meant(request, session)).id, (await meant(request, thread)).id


def routes() -> Iterable[web.RouteDef]:
    """Return every path of the desk."""
    get, post = web.get, web.post
    return (
        get("/v1/rules", rules),
        post("/v1/rules", edit_rules),
        get("/v1/rules/history", rules_history),
        get("/v1/people", people),
        post("/v1/people", add_person),
        post("/v1/people/link", link_person),
        get("/v1/follows", follows),
        post("/v1/follows", follow),
        post("/v1/follows/leave", unfollow),
    )
