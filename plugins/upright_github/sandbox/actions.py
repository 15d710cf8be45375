"""Actions: the logs and the jobs of runs. A log is at another address, and the token is not for it.

Source: docs.github.com, "Workflow jobs"; the address is good for a minute, and refuses a token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from upright_github.sandbox.rest import Handler, refusal
from upright_github.sandbox.story import Story

SIGNED: Final = "sig=good-for-a-minute"


@dataclass(slots=True)
class Actions:
    """What ran; ``logs`` by the job's id, ``jobs`` by the run's."""

    story: Story
    logs: dict[int, str] = field(default_factory=dict)
    jobs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Return the routes of the API."""
        base = "/repos/{owner}/{name}/actions"
        return [
            ("GET", base + "/jobs/{id:\\d+}/logs", self._log),
            ("GET", base + "/runs/{id:\\d+}/attempts/{attempt:\\d+}/jobs", self._jobs),
        ]

    def blobs(self) -> list[web.RouteDef]:
        """Return the routes of the store in which logs lie."""
        return [web.get("/_blobs/{id:\\d+}", self._blob)]

    async def _log(self, request: web.Request) -> web.StreamResponse:
        which = int(request.match_info["id"])
        if which not in self.logs:
            return refusal(404, "Not Found")
        target = f"{self.story.shapes.base}/_blobs/{which}?{SIGNED}"
        return web.Response(status=302, headers={"Location": target})

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" in request.headers or request.query_string != SIGNED:
            return web.Response(status=401, text="<Error><Code>InvalidAuthenticationInfo</Code>")
        return web.Response(text=self.logs[int(request.match_info["id"])])

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        jobs = self.jobs.get(int(request.match_info["id"]), [])
        return web.json_response({"total_count": len(jobs), "jobs": jobs})
