"""Devices page: who asks to be paired, with the digits; what is paired, its queue; revoke."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from upright.core.roles import Role
from upright.store import views_devices
from upright.web.pages.layout import back, newest, page, read
from upright.web.pages.needs_you import field
from upright.web.principal import principal_of
from upright.web.problems import PARTS
from upright.web.reads import whole_id

HERE: Final = "/devices"


async def devices(request: web.Request) -> web.Response:
    """Show devices; pairing requests only to who may approve one."""
    parts, who = request.app[PARTS], principal_of(request)
    seq = await newest(request)
    may_pair = who.role >= Role.OPERATOR and who.exec
    pairings = await parts.commands.pairings() if may_pair else []
    online = parts.online()
    found = await read(request, views_devices.devices)
    rows = [{**device, "online": device["id"] in online} for device in found]
    facts = {"here": "devices", "seq": seq, "pairings": pairings, "rows": rows}
    return page(request, "devices.html", facts)


async def pair(request: web.Request) -> web.Response:
    """Approve a device as it was shown: its hash comes back with the form."""
    bound_hash = await field(request, "bound_hash")
    await request.app[PARTS].commands.pair(request.match_info["code"], bound_hash=bound_hash)
    return back(HERE)


async def revoke(request: web.Request) -> web.Response:
    """Take a device's right away."""
    wanted = await whole_id(request, "device")
    await request.app[PARTS].commands.revoke(wanted)
    return back(HERE)
