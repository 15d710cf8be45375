"""Privacy: what is somebody else's own is not there: not by its id, not in any answer (S5).

One place for all paths: what a request names is looked at before its handler, and what goes out
is looked through behind it. An id that may not be seen, wherever it stands, takes the row that
holds it along; a page that would show one is not sent at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from upright.core.ids import PREFIXES
from upright.store import privacy
from upright.store.errors import UnknownIdError
from upright.store.privacy import NOTHING
from upright.web.bodies import FORM, read_capped, read_form
from upright.web.plain import encode
from upright.web.principal import PRINCIPAL
from upright.web.problems import PARTS

HIDDEN: Final = web.RequestKey("hidden", frozenset[str])
NAMES: Final = frozenset({"id", "request", "session", "thread", "trigger", "wait", "work"})
"""Keys of a query or a body whose value is an id, or any beginning of one."""
_ID: Final = re.compile(rf"\b(?:{'|'.join(sorted(PREFIXES.values()))})_[0-9a-z_]{{1,40}}\b")


async def hidden_from(request: web.Request) -> frozenset[str]:
    """Return the ids that who asks may not see."""
    name = request[PRINCIPAL].name
    return await request.app[PARTS].store.read(lambda c: privacy.hidden(c, name))


def hidden_of(request: web.Request) -> frozenset[str]:
    """Return what was hidden from who asks when they came in."""
    found: frozenset[str] = request.get(HIDDEN, NOTHING)
    return found


async def check_path(request: web.Request) -> None:
    """Refuse a request that names what may not be seen, exactly as if it weren't there.

    An unfinished id is not judged here: what resolves it drops what is hidden first.

    Raises:
        UnknownIdError: it does.
    """
    found = await hidden_from(request)
    request[HIDDEN] = found
    if not found:
        return
    for named in await _named(request):
        if named in found:
            raise UnknownIdError(named)


async def _named(request: web.Request) -> list[str]:
    """Return what a request names: in its path, its query and its body; words are not names."""
    said = [*request.query.items(), *await _fields(request)]
    named = [value for key, value in said if key in NAMES]
    words = [found.group() for _, value in said for found in _ID.finditer(value)]
    path = [value for key, value in request.match_info.items() if key in NAMES]
    return [*path, *named, *words]


async def _fields(request: web.Request) -> list[tuple[str, str]]:
    """Return the texts of a body: a form's, or a JSON object's; its handler judges any other."""
    if not request.can_read_body:
        return []
    if request.content_type == FORM:
        return list((await read_form(request)).items())
    body = await read_capped(request, request.app[PARTS].limits.max_json_bytes)
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    fields = given if isinstance(given, dict) else {}
    return [(key, value) for key, value in fields.items() if isinstance(value, str)]


@web.middleware
async def private(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take out of an answer what may not be seen; an error that names it says nothing of it."""
    try:
        response = await handler(request)
    except Exception as error:
        if holds(str(error), hidden_of(request)):
            raise UnknownIdError(request.path) from None
        raise
    found = hidden_of(request)
    if not found or not isinstance(response, web.Response):
        return response
    body = response.body if isinstance(response.body, bytes) else b""
    if response.content_type == "application/json":
        try:
            response.body = encode(seen(orjson.loads(body), found))
        except UnknownIdError:  # as one says of what isn't there
            raise UnknownIdError(request.match_info.get("id", request.path)) from None
    elif holds(body.decode("utf-8", "replace"), found):
        raise UnknownIdError(request.path)
    return response


def seen(value: object, hidden: frozenset[str]) -> object:
    """Return an answer without the rows that hold a hidden id.

    Raises:
        UnknownIdError: the answer as a whole is about one.
    """
    if isinstance(value, list):
        return [each for each in value if not holds_any(each, hidden)]
    if isinstance(value, dict) and any(isinstance(each, str) for each in value.values()):
        own = {key: each for key, each in value.items() if not isinstance(each, list | dict)}
        if holds_any(own, hidden):
            raise UnknownIdError("it")
    if isinstance(value, dict):
        return {key: seen(each, hidden) for key, each in value.items()}
    return value


def holds_any(value: object, hidden: frozenset[str]) -> bool:
    """Say whether a hidden id stands anywhere in a value."""
    return any(holds(text, hidden) for text in _texts(value))


def holds(text: str, hidden: frozenset[str]) -> bool:
    """Say whether a hidden id stands in a text; linear in its length."""
    return any(found.group() in hidden for found in _ID.finditer(text))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
