"""Stream: an answer sent frame by frame, with what a fault does to the sending."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from aiohttp import web

from upright.llm.scripted.faults import Fault, FaultKind
from upright.llm.scripted.frames import error_frame, torn

STOPPING: Final = frozenset(
    {
        FaultKind.CUT,
        FaultKind.CLEAN_CUT,
        FaultKind.GARBAGE,
        FaultKind.SILENCE,
        FaultKind.STREAM_ERROR,
    }
)
GARBAGE: Final = b"data: {not json\n\n"


async def send(
    request: web.Request, frames: Iterable[bytes], fault: Fault | None
) -> web.StreamResponse:
    """Send the frames as server-sent events; a fault that stops comes after its chunks."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    stops = fault is not None and fault.kind in STOPPING
    for number, frame in enumerate(frames):
        if fault is not None and stops and number >= fault.after_chunks:
            if not await _goes_on(request, response, fault):
                return response
            stops = False
        for piece in _pieces(frame, fault):
            await response.write(piece)
    await response.write_eof()
    return response


async def _goes_on(request: web.Request, response: web.StreamResponse, fault: Fault) -> bool:
    """Do what the fault does between two frames; say whether the rest is sent."""
    match fault.kind:
        case FaultKind.SILENCE:
            await asyncio.sleep(fault.seconds)
            return True
        case FaultKind.CUT:
            if request.transport is not None:
                request.transport.abort()
        case FaultKind.GARBAGE:
            await response.write(GARBAGE)
        case FaultKind.STREAM_ERROR:
            await response.write(error_frame("The server is overloaded.", "server_error"))
        case _:
            pass
    if fault.kind is not FaultKind.CUT:
        await response.write_eof()
    return False


def _pieces(frame: bytes, fault: Fault | None) -> Sequence[bytes]:
    """Return what is written at once; each piece is a chunk of its own on the wire."""
    return torn(frame) if fault and fault.kind is FaultKind.SPLIT_UTF8 else [frame]
