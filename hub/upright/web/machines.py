"""Machines: devices and their owners' words: whom they serve, what they are called (E10)."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from upright.store import views_devices
from upright.web.bodies import read_fields
from upright.web.described import does, reads
from upright.web.plain import answer
from upright.web.problems import PARTS
from upright.web.reads import whole_id
from upright.web.schemas import TEXT, TRUTH, array, ref, thing


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    get, post = web.get, web.post
    return (
        get("/v1/devices", devices),
        get("/v1/devices/{id}", device),
        post("/v1/devices/{id}/share", share),
        post("/v1/devices/{id}/unshare", unshare),
        post("/v1/devices/{id}/rename", rename),
        post("/v1/work/{id}/move", move),
    )


# ------------------------------------------------------------------ reads
@reads(array(ref("Device")))
async def devices(request: web.Request) -> web.Response:
    """List devices, each with ``online``."""
    parts = request.app[PARTS]
    found = await parts.store.read(views_devices.devices)
    online = parts.online()
    return answer([{**device, "online": device["id"] in online} for device in found])


@reads(ref("Device"))
async def device(request: web.Request) -> web.Response:
    """Show one device: its queue, what it holds that is foreign, what is asked about it."""
    wanted = await whole_id(request, "device")
    parts = request.app[PARTS]
    found = await parts.store.read(lambda c: views_devices.device(c, wanted))
    return answer({**found, "online": wanted in parts.online()})


# ------------------------------------------------------------------ words
@does(thing(device=TEXT, person=TEXT, shared=TRUTH), "person")
async def share(request: web.Request) -> web.Response:
    """Let a device run a person's items: ``{"person": …}``."""
    wanted = await whole_id(request, "device")
    (person,) = await read_fields(request, "person")
    return answer(await request.app[PARTS].machines.share(wanted, person))


@does(thing(device=TEXT, person=TEXT, shared=TRUTH), "person")
async def unshare(request: web.Request) -> web.Response:
    """Run none of a person's items any more: ``{"person": …}``."""
    wanted = await whole_id(request, "device")
    (person,) = await read_fields(request, "person")
    return answer(await request.app[PARTS].machines.unshare(wanted, person))


@does(thing(device=TEXT, name=TEXT), "name")
async def rename(request: web.Request) -> web.Response:
    """Call a device something else: ``{"name": …}``."""
    wanted = await whole_id(request, "device")
    (name,) = await read_fields(request, "name")
    return answer(await request.app[PARTS].machines.rename(wanted, name))


@does(thing(work=TEXT, device=TEXT, moved=TRUTH), "device")
async def move(request: web.Request) -> web.Response:
    """Let an item go on at another device: ``{"device": …}``, its whole id."""
    wanted = await whole_id(request, "work")
    (device,) = await read_fields(request, "device")
    return answer(await request.app[PARTS].machines.move(wanted, device))
