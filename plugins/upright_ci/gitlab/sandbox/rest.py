"""REST: the calls that we make, refused where GitLab refuses them, with its own bodies.

Source: docs.gitlab.com, REST API v4; "Application limits".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from aiohttp import web

from upright_ci.gitlab.sandbox import shapes
from upright_ci.gitlab.sandbox.story import Story
from upright_ci.gitlab.sandbox.world import NotThereError, Request

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_NOTE_CHARS: Final = 1_000_000
MAX_PER_PAGE: Final = 100
HANG_S: Final = 60.0
# Some of those that every project has; a line of one is a command, not text.
_COMMANDS: Final = re.compile(
    r"^/(?:merge|close|reopen|approve|assign|label|draft|ready|rebase|title)\b", re.MULTILINE
)


class Fault(StrEnum):
    """What the next call gets instead of its answer."""

    ERROR_502 = "502"
    LIMIT = "limit"
    DROP = "drop"  # no answer, the socket is closed
    HANG = "hang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fault for the next call of a method; ``done``: the call took effect anyway."""

    fault: Fault
    method: str = "POST"
    done: bool = False


@dataclass(slots=True, kw_only=True)
class Rest:
    """The REST API of one sandbox; ``commanded`` are quick actions that a note has carried out."""

    story: Story
    token: str
    closing: asyncio.Event
    faults: list[Rule] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    commanded: list[str] = field(default_factory=list)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; a project's path comes as one part, its slashes escaped."""
        one = "/api/v4/projects/{project}"
        asked = one + "/merge_requests/{iid:\\d+}/notes"
        return [
            web.get("/api/v4/user", self._answering(self._user)),
            web.get(one, self._answering(self._project)),
            web.get(f"{one}/pipelines", self._answering(self._pipelines)),
            web.get(one + "/pipelines/{id:\\d+}", self._answering(self._pipeline)),
            web.get(one + "/pipelines/{id:\\d+}/jobs", self._answering(self._jobs)),
            web.get(one + "/jobs/{id:\\d+}/trace", self._answering(self._trace)),
            web.get(f"{one}/merge_requests", self._answering(self._requests)),
            web.get(asked, self._answering(self._notes)),
            web.post(asked, self._answering(self._create_note)),
            web.route("*", "/api/{rest:.*}", self._answering(self._nothing)),
        ]

    def _answering(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            self.calls.append(f"{request.method} {request.path_qs}")
            if request.headers.get("PRIVATE-TOKEN") != self.token:
                return _said(401, "401 Unauthorized")
            rule = next((one for one in self.faults if one.method == request.method), None)
            if rule is not None:
                self.faults.remove(rule)
                if rule.done:
                    await self._handled(request, handler)  # only the answer is lost
                return await self._spoil(request, rule.fault)
            return await self._handled(request, handler)

        return answer

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except NotThereError:
            return _said(404, "404 Not Found")

    async def _spoil(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        match fault:
            case Fault.ERROR_502:
                return web.Response(status=502, text="<html>GitLab is not responding</html>")
            case Fault.LIMIT:
                refused = _said(429, "This endpoint has been requested too many times.")
                refused.headers["Retry-After"] = "7"
                return refused
            case Fault.HANG:
                try:
                    async with asyncio.timeout(HANG_S):
                        await self.closing.wait()
                except TimeoutError:
                    return _said(504, "too late")
            case Fault.DROP:
                pass
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)

    # -------------------------------------------------------------- what is there
    async def _nothing(self, _: web.Request) -> web.StreamResponse:
        raise NotThereError

    async def _user(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(shapes.user(self.story.world.login))

    async def _project(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        return web.json_response(shapes.api_project(self.story.base, project))

    async def _pipelines(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        found = [one for one in self.story.world.pipelines.values() if one.project == project]
        shown = [shapes.api_pipeline(self.story.base, one, whole=False) for one in found]
        return _page(request, shown)

    async def _pipeline(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        found = self.story.world.pipeline(project, int(request.match_info["id"]))
        return web.json_response(shapes.api_pipeline(self.story.base, found, whole=True))

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        found = self.story.world.pipeline(project, int(request.match_info["id"]))
        return _page(request, [shapes.api_job(one) for one in found.jobs])

    async def _trace(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        job = self.story.world.job(project, int(request.match_info["id"]))
        return web.Response(text=job.trace, content_type="text/plain")

    async def _requests(self, request: web.Request) -> web.StreamResponse:
        project = self.story.world.project(request.match_info["project"])
        found = [one for one in self.story.world.requests.values() if one.project == project]
        return _page(request, [shapes.api_request(self.story.base, one) for one in found])

    def _asked(self, request: web.Request) -> Request:
        project = self.story.world.project(request.match_info["project"])
        return self.story.world.request(project, int(request.match_info["iid"]))

    async def _notes(self, request: web.Request) -> web.StreamResponse:
        notes = self.story.world.notes_on(self._asked(request))
        return _page(request, [shapes.api_note(one) for one in notes])

    async def _create_note(self, request: web.Request) -> web.StreamResponse:
        asked, given = self._asked(request), await request.json()
        body = given.get("body") if isinstance(given, dict) else None
        if not isinstance(body, str) or not body.strip():
            return _said(400, "400 Bad request - Note can't be blank")
        if len(body) > MAX_NOTE_CHARS:
            return _said(400, "400 Bad request - Note is too long (maximum is 1000000 characters)")
        self.commanded += _COMMANDS.findall(body)
        note, _ = self.story.note(asked, body, self.story.world.login)
        return web.json_response(shapes.api_note(note), status=201)


def _page(request: web.Request, shown: Sequence[dict[str, Any]]) -> web.Response:
    """Return one page of a list: by its order, after its times, with GitLab's headers."""
    query = request.query
    per_page = min(int(query.get("per_page", "20")), MAX_PER_PAGE)
    page, key = int(query.get("page", "1")), query.get("order_by", "created_at")
    after = query.get("updated_after")
    rows = [one for one in shown if not after or _at(one["updated_at"]) > _at(after)]
    if all(key in one for one in rows):
        down = query.get("sort", "desc") == "desc"
        rows.sort(key=lambda one: (one[key], one["id"]), reverse=down)
    part = rows[(page - 1) * per_page : page * per_page]
    more = str(page + 1) if page * per_page < len(rows) else ""
    return web.json_response(part, headers={"X-Next-Page": more, "X-Page": str(page)})


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _said(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)
