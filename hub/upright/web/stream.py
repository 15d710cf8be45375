"""Stream: the hub's events as server-sent events; a reader resumes by number, without a gap.

A reader whose next event is gone (pruned, or of another database's numbers) is told so, and where
to start anew; one that does not read is cut off, and may come back with the last number it saw. So
what a reader costs is one batch and one socket's buffer, whatever happens meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, web

from upright.store import views_events
from upright.store.views_events import Gone
from upright.web.bell import rung
from upright.web.bodies import number
from upright.web.credential import still_in
from upright.web.described import Described, described, flag, reads, whole
from upright.web.plain import answer, encode
from upright.web.principal import principal_of
from upright.web.privacy import hidden_from, holds_any
from upright.web.problems import PARTS, ProblemError
from upright.web.schemas import TEXT, WHOLE, thing

RETRY_AFTER_S: Final = 10.0
_DIGITS: Final = 16


@dataclass(slots=True)
class Streams:
    """The open streams: how many each reader has, and how many were cut off for not reading."""

    closing: asyncio.Event = field(default_factory=asyncio.Event)
    open: Counter[str] = field(default_factory=Counter)
    cut: int = 0

    @contextmanager
    def held(self, reader: str, most: int) -> Iterator[None]:
        """Count a stream of a reader.

        Raises:
            ProblemError: 429, it has too many.
        """
        if self.open[reader] >= most:
            detail = f"{most} streams are open already; close one, or share it between tabs"
            raise ProblemError(429, "events.too_many", detail, retry_after_s=RETRY_AFTER_S)
        self.open[reader] += 1
        try:
            yield
        finally:
            self.open[reader] -= 1
            if not self.open[reader]:
                del self.open[reader]


STREAMS: Final = web.AppKey("streams", Streams)


# ------------------------------------------------------------------ paths
@described(
    Described(
        gives=TEXT,
        media="text/event-stream",
        query=(whole("after"), flag("unnamed", "Leave out ``event:``, for readers of any name.")),
        problems=(410,),
    )
)
async def events(request: web.Request) -> web.StreamResponse:
    """Send events behind ``Last-Event-ID`` (or ``?after=``) for ever; without either, new ones.

    410 ``events.gone``: some behind that number are gone; what there is starts at ``start_at``.
    """
    streams, limits = request.app[STREAMS], request.app[PARTS].limits
    with streams.held(principal_of(request).account, limits.max_streams):
        seq = await _start(request)
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",  # a proxy shall not keep events back
            }
        )
        await response.prepare(request)
        try:
            await _send(request, response, b": hello\n\n")
            while not streams.closing.is_set() and await still_in(request):
                seq = await _some(request, response, seq)
        except (ClientConnectionResetError, ConnectionResetError):
            return response  # the reader went away
        except TimeoutError:
            _cut(request)
        except _GoneError:
            return response  # it asks again, and is told
    return response


@reads(thing(seq=WHOLE))
async def last(request: web.Request) -> web.Response:
    """Say the newest event's number: ask first, then list, then stream from it, without a gap."""
    return answer({"seq": await request.app[PARTS].store.read(views_events.last_seq)})


# ------------------------------------------------------------------ one reader
class _GoneError(Exception):
    """What comes next was pruned while its reader was slow."""


async def _start(request: web.Request) -> int:
    seen = request.headers.get("Last-Event-ID")
    store = request.app[PARTS].store
    if seen is None:
        if "after" not in request.query:
            return await store.read(views_events.last_seq)
        seq = number(request, "after", 0)
    elif seen.isascii() and seen.isdigit() and len(seen) <= _DIGITS:
        seq = int(seen)
    else:
        detail = "Last-Event-ID must be a whole number"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "events.last_id", detail)
    gone = await store.read(lambda c: views_events.gone(c, seq))
    if gone is not None:
        detail = f"events behind {seq} are gone; read what you show anew, and start at {gone}"
        more = {"start_at": gone}
        raise ProblemError(HTTPStatus.GONE, "events.gone", detail, more=more)
    return seq


async def _some(request: web.Request, response: web.StreamResponse, seq: int) -> int:
    """Send what there is, or wait for a ring; return the last number that was sent."""
    parts = request.app[PARTS]
    ticket = parts.bell.ticket()  # before looking, so that a commit in between rings it
    batch = parts.limits.events_batch
    found = await parts.store.read(lambda c: views_events.next_of(c, seq, limit=batch))
    if isinstance(found, Gone):
        raise _GoneError
    hidden = await hidden_from(request)
    for event in found:
        seq = int(event["seq"])
        if holds_any(event, hidden):
            continue
        data = encode(event).decode()  # one line: JSON escapes line breaks
        name = "" if request.query.get("unnamed") == "1" else f"event: {event['stop']}\n"
        said = f"id: {event['seq']}\n{name}data: {data}\n\n"
        await _send(request, response, said.encode())
    if not found and not await rung(ticket, parts.limits.events_poll_s):
        await _send(request, response, b": still here\n\n")
    return seq


async def _send(request: web.Request, response: web.StreamResponse, data: bytes) -> None:
    """Write; waits while the reader's buffer is full, up to the limit.

    Raises:
        TimeoutError: the reader does not read.
    """
    async with asyncio.timeout(request.app[PARTS].limits.events_lag_s):
        await response.write(data)


def _cut(request: web.Request) -> None:
    """Cut a reader off that does not read: it knows its last number, and may come back."""
    request.app[STREAMS].cut += 1
    if request.transport is not None:
        request.transport.abort()
