"""Routes: the workbench's paths."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from upright.web.pages import devices, inbox, needs_you, shelf, trigger


def routes() -> Iterable[web.RouteDef]:
    """Return every path of the pages."""
    get, post = web.get, web.post
    return (
        get("/", inbox.inbox),
        get("/triggers/{id}", trigger.trigger),
        post("/triggers/{id}/again", trigger.again),
        post("/work/{id}/cancel", trigger.cancel),
        get("/needs", needs_you.needs_you),
        post("/needs/{id}/approve", needs_you.approve),
        post("/needs/{id}/deny", needs_you.deny),
        post("/needs/{id}/edit", needs_you.edit),
        post("/needs/{id}/answer", needs_you.answer),
        post("/needs/{id}/again", needs_you.ask_again),
        get("/devices", devices.devices),
        post("/devices/pair/{code}", devices.pair),
        post("/devices/{id}/revoke", devices.revoke),
        get("/static/{name}", shelf.static),
    )
