"""Stream: the hub's events as server-sent events; a reader resumes by number, without a gap."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, web

from upright.store import views
from upright.web.bell import rung
from upright.web.bodies import number
from upright.web.plain import answer, encode
from upright.web.problems import PARTS, ProblemError

CLOSING: Final = web.AppKey("closing", asyncio.Event)


async def events(request: web.Request) -> web.StreamResponse:
    """Send events behind ``Last-Event-ID`` (or ``?after=``) for ever; without either, new ones."""
    seq = await _start(request)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    try:
        await response.write(b": hello\n\n")
        while not request.app[CLOSING].is_set():
            seq = await _some(request, response, seq)
    except (ClientConnectionResetError, ConnectionResetError):
        return response  # the reader went away
    return response


async def last(request: web.Request) -> web.Response:
    """Say the newest event's number: ask first, then list, then stream from it, without a gap."""
    return answer({"seq": await request.app[PARTS].store.read(views.last_seq)})


async def _start(request: web.Request) -> int:
    seen = request.headers.get("Last-Event-ID")
    if seen is None:
        newest = await request.app[PARTS].store.read(views.last_seq)
        return number(request, "after", newest)
    if not seen.isascii() or not seen.isdigit():
        detail = "Last-Event-ID must be a whole number"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "events.last_id", detail)
    return int(seen[:16])


async def _some(request: web.Request, response: web.StreamResponse, seq: int) -> int:
    """Send what there is, or wait for a ring; return the last number that was sent."""
    parts = request.app[PARTS]
    ticket = parts.bell.ticket()  # before looking, so that a commit in between rings it
    batch = parts.limits.events_batch
    found = await parts.store.read(lambda c: views.events_since(c, seq, limit=batch))
    for event in found:
        data = encode(event).decode()  # one line: JSON escapes line breaks
        await response.write(
            f"id: {event['seq']}\nevent: {event['stop']}\ndata: {data}\n\n".encode()
        )
        seq = int(event["seq"])
    if not found and not await rung(ticket, parts.limits.events_poll_s):
        await response.write(b": still here\n\n")
    return seq
