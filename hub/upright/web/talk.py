"""Talk: what was said around a trigger, by its service or by what the hub has stored."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web

from upright.core.talk import MOST, told
from upright.engine.ports import TalkQuestion
from upright.store import conversation, intake
from upright.store.errors import UnknownIdError
from upright.web.bodies import number
from upright.web.described import reads, whole
from upright.web.plain import answer
from upright.web.problems import PARTS
from upright.web.reads import whole_id
from upright.web.schemas import ref

NEAR = 5


def routes() -> Iterable[web.RouteDef]:
    """Return the paths."""
    return (web.get("/v1/triggers/{id}/neighbours", neighbours),)


@reads(ref("Neighbours"), whole("before"), whole("after"))
async def neighbours(request: web.Request) -> web.Response:
    """Show the talk around a trigger: ``?before=``, ``?after=``, at most 20 on each side."""
    parts, wanted = request.app[PARTS], await whole_id(request, "trigger")
    before = number(request, "before", NEAR, most=MOST)
    after = number(request, "after", NEAR, most=MOST)
    stored = await parts.store.read(lambda c: intake.read(c, wanted))
    if stored is None:
        raise UnknownIdError(wanted)
    around = await parts.talk(TalkQuestion(trigger=stored, before=before, after=after))
    if around is None:
        around = await parts.store.read(lambda c: conversation.around(c, stored, before, after))
    return answer(told(around, where=stored.id))
