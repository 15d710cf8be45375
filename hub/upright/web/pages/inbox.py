"""Inbox page: one row a trigger: where from, what became of it and why, what it cost."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from upright.core.trigger import Disposition
from upright.store import views_inbox
from upright.web.pages.layout import newest, page, read, visible, with_query
from upright.web.problems import PARTS
from upright.web.reads import wanted_of

ROWS: Final = 50


async def inbox(request: web.Request) -> web.Response:
    """Show what came in: ``?source=``, ``?disposition=``, ``?text=``, ``?before=``."""
    seq = await newest(request)
    wanted = wanted_of(request, ROWS)
    found = await request.app[PARTS].store.read(lambda c: views_inbox.inbox(c, wanted))
    rows = visible(request, found)
    sources = await read(request, views_inbox.sources)
    older = with_query(request, before=found[-1]["seq"]) if len(found) == ROWS else ""
    facts = {
        "here": "inbox",
        "seq": seq,
        "rows": rows,
        "sources": sources,
        "dispositions": [each.value for each in Disposition],
        "wanted": wanted,
        "older": older,
        "first": with_query(request, before=None) if wanted.before_seq else "",
    }
    return page(request, "inbox.html", facts)
