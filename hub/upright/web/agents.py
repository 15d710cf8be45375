"""Agents through the API: who there is, their homes, and making one (B17)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aiohttp import web

from upright.web.bodies import read_fields
from upright.web.described import does, reads
from upright.web.plain import answer
from upright.web.problems import PARTS
from upright.web.schemas import ANY, TEXT, TIME, TRUST, WHOLE, array, thing

_BRIEF: Final = {
    "name": TEXT,
    "template": TEXT,
    "role": TEXT,
    "skills": WHOLE,
    "notes": WHOLE,
    "open_items": WHOLE,
    "added_at_ms": TIME,
}
_FILE: Final = thing(path=TEXT, version=WHOLE, sha256=TEXT, by=TEXT, trust=TRUST, bytes=WHOLE)
_SYNCED: Final = thing(
    agent=TEXT,
    taken_in=array(TEXT),
    laid_out=array(TEXT),
    forgotten=array(TEXT),
    removed=array(TEXT),
    conflicts=array(TEXT),
    refused=ANY,
)


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    get, post = web.get, web.post
    return (
        get("/v1/agents", agents),
        post("/v1/agents", add),
        post("/v1/agents/sync", sync),
        get("/v1/agents/{name}", agent),
    )


@reads(array(thing(**_BRIEF)))
async def agents(request: web.Request) -> web.Response:
    """List agents by name, with what each is for and how much it has to do."""
    return answer(await request.app[PARTS].agents.listed())


@reads(thing(**_BRIEF, folder=TEXT, guide=TEXT, files=array(_FILE), items=array(ANY)))
async def agent(request: web.Request) -> web.Response:
    """Show one agent: its guide, files, skills and open items."""
    return answer(await request.app[PARTS].agents.show(request.match_info["name"]))


@does(thing(name=TEXT, template=TEXT, folder=TEXT), "name", "template")
async def add(request: web.Request) -> web.Response:
    """Make an agent: ``{"name": …, "template": …}``."""
    name, template = await read_fields(request, "name", "template")
    return answer(await request.app[PARTS].agents.add(name, template))


@does(array(_SYNCED))
async def sync(request: web.Request) -> web.Response:
    """Take in what was edited in the homes' folders, and write there what changed in the store."""
    return answer(await request.app[PARTS].agents.sync())
