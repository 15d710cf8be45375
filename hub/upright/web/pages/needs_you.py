"""Needs you page: approvals, questions, drafts; the exact effect, its cause, what tainted it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from upright.engine.clock import now_ms
from upright.store import tokens, views_requests
from upright.web.bodies import read_form
from upright.web.commands import check_grant
from upright.web.pages.layout import back, newest, page, read, visible
from upright.web.principal import PRINCIPAL
from upright.web.problems import PARTS, ProblemError
from upright.web.reads import whole_id

HERE: Final = "/needs"
_SETTLED_SHOWN: Final = 20


async def needs_you(request: web.Request) -> web.Response:
    """Show what waits for a person, the oldest first; below it what was settled lately."""
    seq = await newest(request)
    asked = await read(request, lambda c: views_requests.requests(c, open_only=False))
    waiting = [row for row in asked if row["can"]]
    settled = [row for row in asked if not row["can"]][-_SETTLED_SHOWN:][::-1]
    facts = {
        "here": "needs",
        "seq": seq,
        "waiting": [{**row, "diff": diff_of(row)} for row in waiting],
        "settled": settled,
        "ending": await _ending(request),
        "budgets": visible(request, await request.app[PARTS].purse.near()),
    }
    return page(request, "needs.html", facts)


async def _ending(request: web.Request) -> list[Mapping[str, Any]]:
    """Return those tokens of who looks that end soon."""
    parts, account = request.app[PARTS], request[PRINCIPAL].account
    at = now_ms(parts.clock)
    own = await parts.store.read(lambda c: tokens.listed(c, account=account, now_ms=at))
    return [row for row in own if row["state"] == tokens.State.ENDING]


def diff_of(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what an effect would add, as lines with their signs; where it was edited, both."""
    effect = row["effect"]
    if effect is None:
        return []
    edits: Sequence[Mapping[str, Any]] = effect["edits"]
    before = str(edits[0]["was_text"]) if edits else ""
    return list(_lines(before, effect["text"]))


def _lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        sign = line[:1]
        if sign != "?":
            yield (sign if sign in "+-" else " ", line[2:])


# ------------------------------------------------------------------ what a person decides
async def approve(request: web.Request) -> web.Response:
    """Approve exactly what the page showed: its digest comes back with the form."""
    wanted = await whole_id(request, "request")
    await check_grant(request, wanted)
    digest = (await read_form(request)).get("digest", "")
    await request.app[PARTS].commands.decide(wanted, approve=True, digest=digest)
    return back(HERE)


async def edit(request: web.Request) -> web.Response:
    """Approve what the page showed with another text."""
    wanted = await whole_id(request, "request")
    text, digest = await field(request, "text"), await field(request, "digest")
    await request.app[PARTS].commands.edit(wanted, text, digest)
    return back(HERE)


async def deny(request: web.Request) -> web.Response:
    """Deny what was asked."""
    wanted = await whole_id(request, "request")
    await check_grant(request, wanted)
    await request.app[PARTS].commands.decide(wanted, approve=False)
    return back(HERE)


async def answer(request: web.Request) -> web.Response:
    """Answer a question."""
    wanted = await whole_id(request, "request")
    await request.app[PARTS].commands.answer(wanted, await field(request, "text"))
    return back(HERE)


async def ask_again(request: web.Request) -> web.Response:
    """Ask once more for what nobody approved in time."""
    wanted = await whole_id(request, "request")
    await request.app[PARTS].commands.ask_again(wanted)
    return back(HERE)


async def field(request: web.Request, name: str) -> str:
    """Read a text of a form, with something in it.

    Raises:
        ProblemError: there is none.
    """
    given = (await read_form(request)).get(name, "")
    if not given.strip() or "\0" in given:
        detail = f"{name} must be text, and not empty"
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "body.fields", detail)
    return given.replace("\r\n", "\n")  # a form's line breaks, whatever was typed
