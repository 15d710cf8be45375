"""Bodies: requests are read under a cap and a time, and only then believed."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from upright.web.problems import PARTS, ProblemError

FORM: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 50
CHUNK_BYTES: Final = 64 * 1024
_BODY: Final = web.RequestKey("body", bytes)
"""What was read already: it comes off the socket once, and is looked at before its handler."""


async def read_capped(request: web.Request, cap_bytes: int) -> bytes:
    """Read a body as it came.

    Raises:
        ProblemError: 413 over the cap (before reading, where the length is announced), 415 for a
            compressed body, whose signature would be over other bytes, 408 when it stalls.
    """
    if _BODY in request:
        return request[_BODY]
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        detail = "compressed bodies are not taken"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "body.compressed", detail)
    if (request.content_length or 0) > cap_bytes:
        raise _too_large(cap_bytes)
    timeout_s = request.app[PARTS].limits.body_timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            request[_BODY] = await _drain(request, cap_bytes)
    except TimeoutError as error:
        detail = f"the body did not arrive within {timeout_s:g} s"
        raise ProblemError(HTTPStatus.REQUEST_TIMEOUT, "body.slow", detail) from error
    return request[_BODY]


async def _drain(request: web.Request, cap_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > cap_bytes:
            raise _too_large(cap_bytes)
    return bytes(body)


async def read_form(request: web.Request) -> dict[str, str]:
    """Read the fields of a page's form, each of which stands there once.

    Raises:
        ProblemError: as for :func:`read_capped`; 415 for another kind of form, 400 for a broken
            one.
    """
    if request.content_type != FORM:
        detail = f"send the form as {FORM}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "body.type", detail)
    body = await read_capped(request, request.app[PARTS].limits.max_json_bytes)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        fields = dict(pairs)
    except ValueError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "body.form", "this is no form") from error
    if len(fields) < len(pairs):
        detail = "a field of a form stands in it once"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "body.form", detail)
    return fields


async def read_fields(request: web.Request, *names: str) -> tuple[str, ...]:
    """Read a JSON object that holds exactly these texts, each with something in it.

    Raises:
        ProblemError: it does not.
    """
    body = await read_capped(request, request.app[PARTS].limits.max_json_bytes)
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "body.no_json", str(error)) from error
    if not isinstance(given, dict) or set(given) != set(names):
        detail = f"send a JSON object with exactly: {', '.join(names)}"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    for name in names:
        if not isinstance(given[name], str) or not given[name].strip():
            detail = f"{name} must be text, and not empty"
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
        if "\0" in given[name]:  # no database keeps it in a text
            detail = f"{name} holds a zero byte"
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    return tuple(given[name] for name in names)


def number(request: web.Request, name: str, default: int, *, most: int = 2**53) -> int:
    """Read a whole number of the query, at most *most*.

    Raises:
        ProblemError: it is none.
    """
    given = request.query.get(name)
    if given is None:
        return default
    if not given.isascii() or not given.isdigit() or len(given) > 16:
        detail = f"{name} must be a whole number, not {given[:40]!r}"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "query.number", detail)
    return min(int(given), most)


def _too_large(cap_bytes: int) -> ProblemError:
    detail = f"at most {cap_bytes} bytes are taken"
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body.too_large", detail)
