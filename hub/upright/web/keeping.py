"""Keeping: what is asked of stored things as a whole: events, backups, raw payloads, replays."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.store import views_events
from upright.store.resolve import row
from upright.web.bodies import number
from upright.web.described import Described, Query, described, does, reads, whole
from upright.web.plain import answer
from upright.web.problems import PARTS, ProblemError
from upright.web.reads import LISTED, MOST_LISTED, meant, whole_id
from upright.web.schemas import TEXT, TIME, TRUTH, WHOLE, array, ref, thing

_CHUNK: Final = 256 * 1024
_MOST_REPLAYED: Final = 10_000
_REPLAYED: Final = thing(
    id=TEXT,
    seq=WHOLE,
    kind=TEXT,
    title=TEXT,
    received_at_ms=TIME,
    disposition=TEXT,
    verdict=TEXT,
    rule=TEXT,
    version=TEXT,
    now_verdict=TEXT,
    now_rule=TEXT,
    now_version=TEXT,
    changes=TRUTH,
)


@reads(array(ref("Event")), whole("after"), whole("limit"))
async def events(request: web.Request) -> web.Response:
    """List events: those behind ``?after=``, else the last ones; ``?limit=``; oldest first."""
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    store = request.app[PARTS].store
    newest = await store.read(views_events.last_seq)
    after = number(request, "after", max(newest - limit, 0))
    return answer(await store.read(lambda c: views_events.events_since(c, after, limit=limit)))


@described(Described(media="application/x-tar", problems=(507,)))
async def backup(request: web.Request) -> web.StreamResponse:
    """Send a backup that is made now: a tar."""
    async with request.app[PARTS].keeper.backup() as file:
        opened = await asyncio.to_thread(file.open, "rb")
        with opened:
            size = (await asyncio.to_thread(file.stat)).st_size
            headers = {"Content-Type": "application/x-tar", "Content-Length": str(size)}
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            while chunk := await asyncio.to_thread(opened.read, _CHUNK):
                await response.write(chunk)
            await response.write_eof()
    return response


@described(Described(media="application/octet-stream", problems=(410,)))
async def raw(request: web.Request) -> web.Response:
    """Send the bytes that a trigger, or a payload, came as; 410 when they were pruned."""
    parts, found = request.app[PARTS], await meant(request, request.match_info["id"])
    payload = found.id
    if found.kind == "trigger":
        payload = (await parts.store.read(lambda c: row(c, found)))["payload_id"]
    elif found.kind != "payload":
        detail = f"{found.id} is a {found.kind}; only a trigger came as bytes"
        raise ProblemError(HTTPStatus.NOT_FOUND, "id.other_kind", detail)
    media_type, body, pruned = await parts.keeper.raw(payload)
    if pruned:
        raise ProblemError(HTTPStatus.GONE, "payload.pruned", f"{payload} was {pruned}")
    # whatever it says that it is, no browser shall run it
    headers = {"X-Media-Type": media_type, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=body, content_type="application/octet-stream", headers=headers)


@reads(
    array(_REPLAYED),
    Query(name="trigger", kind=TEXT),
    whole("since"),
    whole("limit"),
    problems=(404, 409),
)
async def replay(request: web.Request) -> web.Response:
    """Judge by today's rules: ``?trigger=``, or ``?since=`` epoch milliseconds; ``?limit=``."""
    parts = request.app[PARTS]
    prefix = request.query.get("trigger", "")
    wanted = (await meant(request, prefix)).id if prefix else ""
    since = number(request, "since", 0)
    limit = number(request, "limit", _MOST_REPLAYED, most=_MOST_REPLAYED)
    return answer(await parts.keeper.replay(trigger=wanted, since_ms=since, limit=limit))


@does(thing(trigger=TEXT, offered_to=TEXT))
async def again(request: web.Request) -> web.Response:
    """Offer a held trigger to the router."""
    wanted = await whole_id(request, "trigger")
    return answer(await request.app[PARTS].keeper.again(wanted))
