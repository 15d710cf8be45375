"""Health: for supervisors and for Prometheus; nothing here needs a token."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from upright.engine.clock import now_ms
from upright.store import tokens
from upright.web.described import Described, described, reads
from upright.web.hooks import REFUSED
from upright.web.metrics import TEXT_FORMAT, sample, written
from upright.web.plain import answer
from upright.web.problems import PARTS
from upright.web.schemas import TEXT, TRUTH, mapping, thing
from upright.web.stream import STREAMS


@reads(thing(alive=TRUTH))
async def alive(_request: web.Request) -> web.Response:
    """Say that the event loop turns."""
    return answer({"alive": True})


@described(Described(gives=thing(ready=TRUTH, unready=mapping(TEXT)), statuses=(200, 503)))
async def ready(request: web.Request) -> web.Response:
    """Say whether triggers are taken; 503 names what isn't ready."""
    unready = request.app[PARTS].unready()
    status = HTTPStatus.SERVICE_UNAVAILABLE if unready else HTTPStatus.OK
    return answer({"ready": not unready, "unready": unready}, status)


@described(Described(gives=TEXT, media="text/plain", problems=(421,)))
async def metrics(request: web.Request) -> web.Response:
    """Write the gauges in Prometheus's text format, by name."""
    app = request.app
    refused = {
        sample("upright_hooks_refused_total", source=source, code=code): float(count)
        for (source, code), count in app[REFUSED].items()
    }
    streams = {
        "upright_event_streams": float(app[STREAMS].open.total()),
        "upright_event_streams_cut_total": float(app[STREAMS].cut),
    }
    at = now_ms(app[PARTS].clock)
    ends = {"upright_tokens_ending": await app[PARTS].store.read(lambda c: tokens.ending(c, at))}
    samples = {**await app[PARTS].gauges(), **refused, **streams, **ends}
    return web.Response(
        body=written(samples).encode(),
        headers={"Content-Type": f"{TEXT_FORMAT}; charset=utf-8"},
    )
