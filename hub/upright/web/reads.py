"""Reads: the JSON API's views, for the CLI and for pages. Any unique beginning of an id will do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.core.recall import page
from upright.core.trigger import Disposition
from upright.core.wait import WaitKind
from upright.core.work import TERMINAL, WorkState
from upright.engine.clock import now_ms
from upright.store import (
    costs,
    oracle,
    recall,
    snapshots,
    views,
    views_devices,
    views_inbox,
    views_requests,
    views_why,
    views_work,
)
from upright.store.plain import Plain
from upright.store.resolve import Resolved, resolve, row
from upright.store.unit import Connection
from upright.web.bodies import number
from upright.web.described import Query, flag, reads, whole
from upright.web.forms import DISPOSITION
from upright.web.plain import answer
from upright.web.principal import PRINCIPAL
from upright.web.privacy import HIDDEN, hidden_of
from upright.web.problems import PARTS, ProblemError
from upright.web.schemas import ANY, TEXT, TIME, TRUTH, array, mapping, maybe, ref, thing

MOST_LISTED: Final = 500
LISTED: Final = 50
MOST_SOUGHT: Final = 200
_STATUS: Final = thing(
    version=TEXT,
    hub=TEXT,
    name=TEXT,
    began_ms=TIME,
    model=maybe(TEXT),
    devices_online=array(TEXT),
    sources=mapping(TEXT),
    services=mapping(TRUTH),
)


async def _read(request: web.Request, query: Callable[[Connection], object]) -> web.Response:
    return answer(await request.app[PARTS].store.read(query))


async def meant(request: web.Request, prefix: str) -> Resolved:
    """Find what a beginning of an id means to who asks, to whom nothing hidden exists.

    Raises:
        UnknownIdError: nothing. AmbiguousIdError: several things.
    """
    hidden = hidden_of(request)
    return await request.app[PARTS].store.read(lambda c: resolve(c, prefix, hidden))


async def whole_id(request: web.Request, kind: str) -> str:
    """Return the whole id that the path's ``id`` begins.

    Raises:
        UnknownIdError: nothing does. AmbiguousIdError: several do.
        ProblemError: it is something else's.
    """
    found = await meant(request, request.match_info["id"])
    if found.kind != kind:
        detail = f"{found.id} is a {found.kind}, not a {kind}"
        raise ProblemError(HTTPStatus.NOT_FOUND, "id.other_kind", detail)
    return found.id


# ------------------------------------------------------------------ lists
@reads(
    array(ref("Inbox")),
    whole("limit"),
    whole("before"),
    Query(name="disposition", kind=DISPOSITION),
    Query(name="source", kind=TEXT),
    Query(name="text", kind=TEXT, says="Found in what was said, titles and reasons."),
)
async def inbox(request: web.Request) -> web.Response:
    """List triggers, newest first; page on with the last one's ``seq`` as ``?before=``."""
    wanted = wanted_of(request, number(request, "limit", LISTED, most=MOST_LISTED))
    return await _read(request, lambda c: views_inbox.inbox(c, wanted))


def wanted_of(request: web.Request, limit: int) -> views_inbox.Wanted:
    """Read from a query which triggers are wanted.

    Raises:
        ProblemError: it can't be meant.
    """
    named = request.query.get("disposition")
    if named and named not in {each.value for each in Disposition}:
        detail = f"disposition is one of: {', '.join(Disposition)}"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "query.disposition", detail)
    return views_inbox.Wanted(
        limit=limit,
        before_seq=number(request, "before", 0) or None,
        disposition=Disposition(named) if named else None,
        source=request.query.get("source", ""),
        text=request.query.get("text", "").strip()[:MOST_SOUGHT],
        seen_by=request[PRINCIPAL].name if request[HIDDEN] else "",
    )


@reads(array(ref("WorkListed")), flag("open"))
async def work_list(request: web.Request) -> web.Response:
    """List work items, last changed first; ``?open=1`` leaves out what has ended."""
    live = tuple(state for state in WorkState if state not in TERMINAL)
    states = live if request.query.get("open") == "1" else ()
    online = request.app[PARTS].online()
    return await _read(request, lambda c: _with_devices(c, online, states))


def _with_devices(
    c: Connection, online: Collection[str], states: Collection[WorkState]
) -> list[Plain]:
    """Read items; a wait for a job that has not begun has ``held_by``: what that waits for."""
    items = views_work.work_list(c, states=states)
    jobs = {wait["ref"] for item in items for wait in item["waits"] if wait["kind"] == WaitKind.JOB}
    held = views_devices.held_back(c, jobs)
    for item in items:
        item["waits"] = [
            views_devices.held_by(wait, held[wait["ref"]], online) for wait in item["waits"]
        ]
    return items


@reads(array(ref("Session")), whole("limit"), flag("live"))
async def sessions(request: web.Request) -> web.Response:
    """List sessions, newest first; ``?live=1`` leaves out what has ended."""
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    live_only = request.query.get("live") == "1"
    return await _read(request, lambda c: views.sessions(c, limit=limit, live_only=live_only))


@reads(array(ref("RequestShown")), flag("all"))
async def requests(request: web.Request) -> web.Response:
    """List what people are asked; ``?all=1`` with what is settled."""
    open_only = request.query.get("all") != "1"
    return await _read(request, lambda c: views_requests.requests(c, open_only=open_only))


@reads(ref("RequestShown"))
async def one_request(request: web.Request) -> web.Response:
    """Show one thing that people are asked, settled or not."""
    wanted = await whole_id(request, "request")
    return await _read(request, lambda c: views_requests.request(c, wanted))


@reads(array(ref("Source")))
async def sources(request: web.Request) -> web.Response:
    """List sources and their states.

    ``heard_at_ms`` is when a source brought its last trigger, ``alive_at_ms`` when its service last
    gave a sign of life; ``gap`` says what may have been missed for good; ``dead`` counts the
    requests that broke its connector.
    """
    hooks = request.app[PARTS].hooks
    rows = await request.app[PARTS].store.read(views.sources)
    for source in rows:
        health = hooks.health(source["name"])
        source |= {"alive_at_ms": health.heard_at, "gap": health.gap}
        source["dead"] = hooks.dead(source["name"])
    return answer(rows)


@reads(ref("Spent"), whole("since"))
async def spent(request: web.Request) -> web.Response:
    """Add up the ledger; ``?since=`` epoch milliseconds."""
    since_ms = number(request, "since", 0)
    return await _read(request, lambda c: costs.costs(c, since_ms))


@reads(array(ANY))
async def stalled(request: web.Request) -> web.Response:
    """List unfinished work that nothing will ever wake: always empty, or it is our bug (B11.8)."""
    return await _read(request, lambda c: [*oracle.stalled(c), *oracle.unheard(c)])


@reads(_STATUS)
async def status(request: web.Request) -> web.Response:
    """Say how the hub is."""
    return answer(await request.app[PARTS].status())


# ------------------------------------------------------------------ one thing
SHOWS: Final[Mapping[str, Callable[[Connection, str], object]]] = {
    "trigger": views.trigger,
    "thread": views.thread,
    "session": views.session,
    "work": views_work.work,
    "job": views_work.job,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Which page of something who reads, and when."""

    reader: str
    part: str
    offset: int
    now_ms: int


def _show(c: Connection, found: Resolved, wanted: _Page) -> dict[str, object]:
    view = SHOWS.get(found.kind)
    told = {"kind": found.kind, "it": view(c, found.id) if view else row(c, found)}
    if found.kind not in recall.READERS:
        return told
    fresh = recall.show(c, found.id, wanted.part)
    shown = snapshots.begun(c, wanted.now_ms, wanted.reader, fresh, offset=wanted.offset)
    return {**told, "shown": page(shown, wanted.offset)}


@reads(thing(kind=TEXT, it=ANY, shown=ANY))
async def show(request: web.Request) -> web.Response:
    """Show whatever has this id: ``{"kind": …, "it": …, "shown": …}``.

    ``shown`` is what a model reads of it (B7.1): ``?part=`` is one of its ``parts``, ``?offset=``
    its ``read_on_at``, which goes on in the text that the first page was of.
    """
    prefix, parts = request.match_info["id"], request.app[PARTS]
    wanted = _Page(
        reader=f"person:{request[PRINCIPAL].name}",
        part=request.query.get("part", ""),
        offset=number(request, "offset", 0),
        now_ms=now_ms(parts.clock),
    )
    hidden = hidden_of(request)
    return answer(await parts.store.write(lambda c: _show(c, resolve(c, prefix, hidden), wanted)))


@reads(ref("Trigger"))
async def trigger(request: web.Request) -> web.Response:
    """Show one trigger."""
    wanted = await whole_id(request, "trigger")
    return await _read(request, lambda c: views.trigger(c, wanted))


@reads(ref("Why"))
async def why(request: web.Request) -> web.Response:
    """Show a trigger's path; of a work item, the one of the trigger that opened it."""
    found = await meant(request, request.match_info["id"])
    return await _read(request, lambda c: views_why.why(c, _trigger_of(c, found)))


def _trigger_of(c: Connection, found: Resolved) -> str:
    if found.kind == "work":
        opened: str = row(c, found)["trigger_id"]
        return opened
    if found.kind != "trigger":
        detail = f"{found.id} is a {found.kind}; ask about a trigger or a work item"
        raise ProblemError(HTTPStatus.NOT_FOUND, "id.other_kind", detail)
    return found.id


@reads(ref("Work"))
async def work(request: web.Request) -> web.Response:
    """Show one work item."""
    wanted = await whole_id(request, "work")
    return await _read(request, lambda c: views_work.work(c, wanted))


@reads(ref("Session"))
async def session(request: web.Request) -> web.Response:
    """Show one session."""
    wanted = await whole_id(request, "session")
    return await _read(request, lambda c: views.session(c, wanted))


@reads(array(ref("Entry")), whole("after"), whole("limit"))
async def entries(request: web.Request) -> web.Response:
    """List a transcript: ``?after=`` a number, ``?limit=``."""
    wanted = await whole_id(request, "session")
    after = number(request, "after", -1)
    limit = number(request, "limit", LISTED, most=MOST_LISTED)
    return await _read(request, lambda c: views.entries(c, wanted, after_n=after, limit=limit))
