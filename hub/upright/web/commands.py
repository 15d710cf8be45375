"""Commands: what a signed-in person does through the API; each answers after its commit."""

from __future__ import annotations

from aiohttp import web

from upright.core.request import RequestKind
from upright.core.roles import Role
from upright.store import requests
from upright.web.bodies import read_fields
from upright.web.described import Query, does, reads
from upright.web.plain import answer
from upright.web.principal import require
from upright.web.problems import PARTS
from upright.web.reads import whole_id
from upright.web.schemas import TEXT, TRUTH, array, ref, thing


@does(thing(request=TEXT, answered=TRUTH), "text")
async def answer_request(request: web.Request) -> web.Response:
    """Answer a question: ``{"text": …}``."""
    wanted = await whole_id(request, "request")
    (text,) = await read_fields(request, "text")
    return answer(await request.app[PARTS].commands.answer(wanted, text))


@does(thing(request=TEXT, approved=TRUTH), query=(Query(name="digest", kind=TEXT),))
async def approve(request: web.Request) -> web.Response:
    """Approve exactly what was looked at: ``?digest=`` of the effect, 8 or more of its digits.

    What sends nothing (a device, a finished item's evidence) is asked anew when it changes: its id
    is enough.
    """
    wanted = await whole_id(request, "request")
    await check_grant(request, wanted)
    digest = request.query.get("digest", "")
    return answer(await request.app[PARTS].commands.decide(wanted, approve=True, digest=digest))


@does(thing(request=TEXT, approved=TRUTH))
async def deny(request: web.Request) -> web.Response:
    """Deny what was asked."""
    wanted = await whole_id(request, "request")
    await check_grant(request, wanted)
    return answer(await request.app[PARTS].commands.decide(wanted, approve=False))


@does(thing(request=TEXT, approved=TRUTH, edited=TRUTH), "text", "digest")
async def edit(request: web.Request) -> web.Response:
    """Approve an effect with another text: ``{"text": …, "digest": …}`` of what was edited."""
    wanted = await whole_id(request, "request")
    text, digest = await read_fields(request, "text", "digest")
    return answer(await request.app[PARTS].commands.edit(wanted, text, digest))


@does(thing(request=TEXT, again_of=TEXT))
async def ask_again(request: web.Request) -> web.Response:
    """Ask once more for what nobody approved in time."""
    wanted = await whole_id(request, "request")
    return answer(await request.app[PARTS].commands.ask_again(wanted))


@reads(array(ref("Pairing")))
async def pairings(request: web.Request) -> web.Response:
    """List the devices that ask to be paired."""
    return answer(await request.app[PARTS].commands.pairings())


@reads(ref("Pairing"))
async def pairing(request: web.Request) -> web.Response:
    """Show the device whose code this is."""
    return answer(await request.app[PARTS].commands.pairing(request.match_info["code"]))


@does(thing(device=TEXT, granted=array(TEXT)), "bound_hash")
async def pair(request: web.Request) -> web.Response:
    """Approve a device as it was shown: ``{"bound_hash": …}``."""
    (bound_hash,) = await read_fields(request, "bound_hash")
    code = request.match_info["code"]
    return answer(await request.app[PARTS].commands.pair(code, bound_hash=bound_hash))


@does(thing(device=TEXT, revoked=TRUTH, was_online=TRUTH))
async def revoke(request: web.Request) -> web.Response:
    """Take a device's right away."""
    device = await whole_id(request, "device")
    return answer(await request.app[PARTS].commands.revoke(device))


@does(thing(ok=TRUTH, summary=TEXT, scopes=array(TEXT)))
async def test(request: web.Request) -> web.Response:
    """Look live whether a source could work."""
    return answer(await request.app[PARTS].commands.test(request.match_info["name"]))


@does(thing(source=TEXT, retried=TRUTH))
async def retry(request: web.Request) -> web.Response:
    """Try a source again now."""
    return answer(await request.app[PARTS].commands.retry(request.match_info["name"]))


async def check_grant(request: web.Request, wanted: str) -> None:
    """Refuse who has no grant to let commands run, where a device's own request asks for that.

    Raises:
        ForbiddenError: they have none.
    """
    kind = await request.app[PARTS].store.read(lambda c: requests.read(c, wanted).kind)
    if kind is RequestKind.DEVICE:
        require(request, Role.OPERATOR, runs=True)
