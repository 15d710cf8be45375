"""Oversight: waits, effects and figures, and what an operator does to work that is stuck."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.core.outbox import OutboxState
from upright.engine.clock import now_ms
from upright.store import views_oversight
from upright.web.bodies import number
from upright.web.described import Query, does, flag, reads, whole
from upright.web.forms import one_of
from upright.web.plain import answer
from upright.web.problems import PARTS, ProblemError
from upright.web.reads import LISTED, MOST_LISTED, whole_id
from upright.web.schemas import ANY, NUMBER, TEXT, TRUTH, WHOLE, array, mapping, maybe, ref, thing

WINDOW_S: Final = 600
_STATS: Final = thing(
    window_s=WHOLE,
    rates=mapping(ANY),
    ages_s=mapping(maybe(NUMBER)),
    leases=WHOLE,
    work=mapping(WHOLE),
    sizes=mapping(WHOLE),
    stalled=array(ANY),
)


def routes() -> Iterable[web.RouteDef]:
    """Return the paths of this part."""
    get, post = web.get, web.post
    return (
        get("/v1/waits", waits),
        post("/v1/waits/{id}/wake", wake),
        post("/v1/waits/{id}/cancel", cancel_wait),
        post("/v1/work/{id}/cancel", cancel_work),
        post("/v1/work/{id}/unblock", unblock),
        post("/v1/sessions/{id}/stop", stop),
        get("/v1/outbox", effects),
        get("/v1/outbox/{id}", effect),
        post("/v1/outbox/{id}/retry", retry),
        post("/v1/outbox/{id}/discard", discard),
        get("/v1/stats", stats),
    )


# ------------------------------------------------------------------ reads
@reads(array(ref("Wait")), flag("all"), whole("limit"))
async def waits(request: web.Request) -> web.Response:
    """List waits; ``?all=1`` with those that have ended, ``?limit=``."""
    open_only = request.query.get("all") != "1"
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    read = request.app[PARTS].store.read
    return answer(await read(lambda c: views_oversight.waits(c, open_only=open_only, limit=limit)))


@reads(array(ref("Effect")), Query(name="state", kind=one_of(OutboxState)), whole("limit"))
async def effects(request: web.Request) -> web.Response:
    """List outward effects, the newest first: ``?state=``, ``?limit=``."""
    named = request.query.get("state")
    if named is not None and named not in {each.value for each in OutboxState}:
        detail = f"state is one of: {', '.join(OutboxState)}"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "query.state", detail)
    state = OutboxState(named) if named else None
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    read = request.app[PARTS].store.read
    return answer(await read(lambda c: views_oversight.effects(c, state=state, limit=limit)))


@reads(ref("Effect"))
async def effect(request: web.Request) -> web.Response:
    """Show one effect."""
    wanted = await whole_id(request, "outbox")
    return answer(await request.app[PARTS].store.read(lambda c: views_oversight.effect(c, wanted)))


@reads(_STATS, whole("window"))
async def stats(request: web.Request) -> web.Response:
    """Say how much happens, and what waits how long: ``?window=`` in seconds."""
    parts = request.app[PARTS]
    window_s = max(number(request, "window", WINDOW_S, most=7 * 24 * 3600), 1)
    at = now_ms(parts.clock)
    found = await parts.store.read(lambda c: views_oversight.stats(c, at, 1000 * window_s))
    return answer({**found, "stalled": parts.oversight.stalled()})


# ------------------------------------------------------------------ commands
@does(thing(wait=TEXT, session=TEXT, woken=TRUTH))
async def wake(request: web.Request) -> web.Response:
    """End a wait as if what it is for had come."""
    wanted = await whole_id(request, "wait")
    return answer(await request.app[PARTS].oversight.wake(wanted))


@does(thing(wait=TEXT, session=TEXT, cancelled=TRUTH))
async def cancel_wait(request: web.Request) -> web.Response:
    """Take a wait away; its worker decides anew."""
    wanted = await whole_id(request, "wait")
    return answer(await request.app[PARTS].oversight.cancel_wait(wanted))


@does(thing(work=TEXT, cancelled=TRUTH))
async def cancel_work(request: web.Request) -> web.Response:
    """Cancel a work item and its children."""
    wanted = await whole_id(request, "work")
    return answer(await request.app[PARTS].oversight.cancel_work(wanted))


@does(thing(work=TEXT, session=TEXT, unblocked=TRUTH))
async def unblock(request: web.Request) -> web.Response:
    """Let a blocked item go on."""
    wanted = await whole_id(request, "work")
    return answer(await request.app[PARTS].oversight.unblock(wanted))


@does(thing(session=TEXT, stopped=TRUTH))
async def stop(request: web.Request) -> web.Response:
    """Stop a session for good."""
    wanted = await whole_id(request, "session")
    return answer(await request.app[PARTS].oversight.stop(wanted))


@does(thing(effect=TEXT, state=TEXT), query=(flag("yes"),))
async def retry(request: web.Request) -> web.Response:
    """Send an effect again that was not sent; ``?yes=1`` although it may be visible."""
    wanted = await whole_id(request, "outbox")
    yes = request.query.get("yes") == "1"
    return answer(await request.app[PARTS].oversight.retry_effect(wanted, yes=yes))


@does(thing(effect=TEXT, state=TEXT))
async def discard(request: web.Request) -> web.Response:
    """Drop an effect that is held or pending."""
    wanted = await whole_id(request, "outbox")
    return answer(await request.app[PARTS].oversight.discard_effect(wanted))
