"""Health: for supervisors and for Prometheus; nothing here needs a token."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.web.hooks import REFUSED
from upright.web.plain import answer
from upright.web.problems import PARTS

TEXT_FORMAT: Final = "text/plain; version=0.0.4"


async def alive(_request: web.Request) -> web.Response:
    """Say that the event loop turns."""
    return answer({"alive": True})


async def ready(request: web.Request) -> web.Response:
    """Say whether triggers are taken; 503 names what isn't ready."""
    unready = request.app[PARTS].unready()
    status = HTTPStatus.SERVICE_UNAVAILABLE if unready else HTTPStatus.OK
    return answer({"ready": not unready, "unready": unready}, status)


async def metrics(request: web.Request) -> web.Response:
    """Write the gauges in Prometheus's text format, by name."""
    refused = {
        f'upright_hooks_refused_total{{source="{source}",code="{code}"}}': float(count)
        for (source, code), count in request.app[REFUSED].items()
    }
    samples = {**await request.app[PARTS].gauges(), **refused}
    lines = [f"{name} {value:g}" for name, value in sorted(samples.items())]
    return web.Response(
        body="".join(f"{line}\n" for line in lines).encode(),
        headers={"Content-Type": f"{TEXT_FORMAT}; charset=utf-8"},
    )
