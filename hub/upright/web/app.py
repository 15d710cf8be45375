"""App: the hub's one web application: every path, and what stands before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from aiohttp import web

from upright.web import (
    agents,
    commands,
    desk,
    device,
    health,
    hooks,
    keeping,
    machines,
    openapi,
    oversight,
    purse,
    reads,
    signin,
    stream,
    talk,
    team,
    words,
)
from upright.web.guard import guard
from upright.web.pages import shelf
from upright.web.pages.layout import problem_page
from upright.web.pages.routes import routes as pages
from upright.web.parts import Parts
from upright.web.privacy import private
from upright.web.problems import PARTS, PROBLEM_PAGE, expected, problems


def routes() -> Iterable[web.RouteDef]:
    """Return every path."""
    get, post = web.get, web.post
    return (
        post("/hooks/{source}", hooks.receive),
        get("/v1/device", device.serve),
        get("/v1/events", stream.events),
        get("/v1/events/last", stream.last),
        get("/v1/events/list", keeping.events),
        get("/v1/backup", keeping.backup),
        get("/v1/raw/{id}", keeping.raw),
        get("/v1/replay", keeping.replay),
        post("/v1/triggers/{id}/again", keeping.again),
        get("/v1/openapi.json", openapi.serve),
        get("/v1/status", reads.status),
        get("/v1/inbox", reads.inbox),
        get("/v1/triggers/{id}", reads.trigger),
        get("/v1/why/{id}", reads.why),
        get("/v1/show/{id}", reads.show),
        get("/v1/work", reads.work_list),
        get("/v1/work/{id}", reads.work),
        get("/v1/sessions", reads.sessions),
        get("/v1/sessions/{id}", reads.session),
        get("/v1/sessions/{id}/entries", reads.entries),
        post("/v1/sessions/{id}/say", words.say),
        post("/v1/sessions/{id}/interrupt", words.interrupt),
        post("/v1/sessions/{id}/ask", words.ask),
        get("/v1/requests", reads.requests),
        get("/v1/requests/{id}", reads.one_request),
        post("/v1/requests/{id}/answer", commands.answer_request),
        post("/v1/requests/{id}/approve", commands.approve),
        post("/v1/requests/{id}/deny", commands.deny),
        post("/v1/requests/{id}/edit", commands.edit),
        post("/v1/requests/{id}/ask-again", commands.ask_again),
        get("/v1/pairings", commands.pairings),
        get("/v1/pairings/{code}", commands.pairing),
        post("/v1/pairings/{code}/approve", commands.pair),
        *machines.routes(),
        *agents.routes(),
        post("/v1/devices/{id}/revoke", commands.revoke),
        get("/v1/sources", reads.sources),
        post("/v1/sources/{name}/retry", commands.retry),
        post("/v1/sources/{name}/test", commands.test),
        get("/v1/costs", reads.spent),
        get("/v1/stalled", reads.stalled),
        *talk.routes(),
        *oversight.routes(),
        *desk.routes(),
        *signin.routes(),
        *team.routes(),
        *purse.routes(),
        *pages(),
        get("/healthz", health.alive),
        get("/readyz", health.ready),
        get("/metrics", health.metrics),
    )


def make_app(parts: Parts) -> web.Application:
    """Make the application. Shutting it down ends event streams and cuts device sockets."""
    app = web.Application(middlewares=(problems, private, guard))
    app[PARTS] = parts
    app[hooks.REFUSED] = Counter()
    app[device.SOCKETS] = device.Sockets()
    app[stream.STREAMS] = stream.Streams()
    app[PROBLEM_PAGE] = problem_page
    app.on_startup.append(shelf.put)
    app.on_shutdown.append(_close)
    app[openapi.DOCUMENT] = openapi.written(routes())
    app.add_routes([_expecting(route) for route in routes()])
    return app


def _expecting(route: web.RouteDef) -> web.RouteDef:
    kwargs = {**route.kwargs, "expect_handler": expected}
    return web.RouteDef(route.method, route.path, route.handler, kwargs)


async def _close(app: web.Application) -> None:
    app[stream.STREAMS].closing.set()
    app[PARTS].bell.ring()
    app[device.SOCKETS].abort_all()
