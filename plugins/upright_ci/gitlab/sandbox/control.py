"""Control: acts at the sandbox by HTTP, below ``/_sandbox``; each delivers its webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from upright_ci.gitlab.sandbox.rest import Fault, Rest, Rule
from upright_ci.gitlab.sandbox.story import Story
from upright_ci.gitlab.sandbox.world import NotThereError, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The control API; it asks for no token: it listens on the loopback only."""

    story: Story
    rest: Rest

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.post("/_sandbox/merge_requests", self._request),
            web.post("/_sandbox/notes", self._note),
            web.post("/_sandbox/pipelines", self._pipeline),
            web.post("/_sandbox/faults", self._fault),
        ]

    async def _request(self, request: web.Request) -> web.Response:
        """``{project, title, branch, sha}``."""
        given = await request.json()
        made = self.story.request(
            self._project(given), given["title"], given["branch"], given["sha"]
        )
        return await self._told(iid=made.iid)

    async def _note(self, request: web.Request) -> web.Response:
        """``{project, iid, body, author}``."""
        given = await request.json()
        try:
            on = self.story.world.request(self._project(given), int(given["iid"]))
        except NotThereError:
            return web.json_response({"error": "no such merge request"}, status=404)
        note, _ = self.story.note(on, given["body"], given.get("author", "ann"))
        return await self._told(id=note.id)

    async def _pipeline(self, request: web.Request) -> web.Response:
        """``{project, branch, sha, status, trace, job, iid}``: it begins, and ends so."""
        given = await request.json()
        made, _ = self.story.begin(
            self._project(given), given["branch"], given["sha"], iid=given.get("iid")
        )
        trace, job = given.get("trace", ""), given.get("job", "unit")
        self.story.end(made, given.get("status", "failed"), trace=trace, job=job)
        return await self._told(id=made.id)

    async def _fault(self, request: web.Request) -> web.Response:
        """``{fault, method, done}`` for the next call."""
        given = await request.json()
        rule = Rule(
            fault=Fault(given["fault"]),
            method=given.get("method", "POST"),
            done=bool(given.get("done")),
        )
        self.rest.faults.append(rule)
        return web.json_response({})

    def _project(self, given: dict[str, Any]) -> Project:
        path = str(given["project"])
        return self.story.world.projects.get(path) or self.story.project(path)

    async def _told(self, **made: int) -> web.Response:
        return web.json_response({**made, "answers": await self.story.tell()})
