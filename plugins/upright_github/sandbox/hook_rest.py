"""Hook calls: a repository's hooks, what was delivered to each, and delivering it once more.

Source: docs.github.com, "Repository webhooks", API version 2022-11-28: deliveries are kept for
three days, the newest first, and a redelivery carries the GUID of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from aiohttp import web

from upright_github.sandbox.postman import Attempt, Delivery, Hook
from upright_github.sandbox.rest import Handler, Rest, refusal, repo_of
from upright_github.sandbox.shapes import Shape, stamp
from upright_github.sandbox.world import NotThereError

KEPT: Final = timedelta(days=3)
MOST_TRIES: Final = 1_000
_HOOKS: Final = "/repos/{owner}/{name}/hooks"
_DELIVERIES: Final = f"{_HOOKS}/{{hook:\\d+}}/deliveries"


@dataclass(slots=True)
class HookRest:
    """The calls about hooks. ``forbidden``: the token may not see them."""

    rest: Rest
    forbidden: bool = False

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return method, path and handler of each."""
        return (
            ("GET", _HOOKS, self._hooks),
            ("GET", _DELIVERIES, self._deliveries),
            ("POST", f"{_DELIVERIES}/{{id:\\d+}}/attempts", self._attempt),
        )

    async def _hooks(self, request: web.Request) -> web.StreamResponse:
        if self.forbidden:
            return refusal(404, "Not Found")
        self.rest.story.world.repository(repo_of(request))
        hooks = self.rest.story.postman.hooks.values()
        return self.rest.page(request, [_hook(one) for one in hooks])

    async def _deliveries(self, request: web.Request) -> web.StreamResponse:
        if self.forbidden:
            return refusal(404, "Not Found")
        hook = int(request.match_info["hook"])
        since = self.rest.story.world.now() - KEPT
        found = [
            _delivery(one, attempt, number)
            for number, one, attempt in self._attempts()
            if one.hook.id == hook and attempt.at >= since
        ]
        return self._from_cursor(request, found[::-1])

    def _from_cursor(self, request: web.Request, found: list[Shape]) -> web.Response:
        """Return a page: these have a cursor that says nothing to others, and no numbers."""
        if "page" in request.query:
            return refusal(422, "Deliveries are paged by a cursor.")
        cursor = request.query.get("cursor", "v1_0").removeprefix("v1_")
        size = min(int(request.query.get("per_page", "30")), 100)
        at = int(cursor) if cursor.isdigit() else 0
        answer = web.json_response(found[at : at + size])
        if at + size < len(found):
            base = f"{self.rest.story.shapes.base}{request.path}"
            query = f"per_page={size}&cursor=v1_{at + size}"
            answer.headers["Link"] = f'<{base}?{query}>; rel="next"'
        return answer

    async def _attempt(self, request: web.Request) -> web.StreamResponse:
        wanted = int(request.match_info["id"])
        for number, one, _ in self._attempts():
            if number == wanted:
                self.rest.story.postman.redeliver(one.guid)
                return web.json_response({}, status=202)
        raise NotThereError("delivery", wanted)

    def _attempts(self) -> list[tuple[int, Delivery, Attempt]]:
        """Return every try with its id, in the order of the deliveries; an id stays the same."""
        deliveries = enumerate(self.rest.story.postman.deliveries.values(), start=1)
        return [
            (number * MOST_TRIES + count, one, attempt)
            for number, one in deliveries
            for count, attempt in enumerate(one.attempts)
        ]


def _hook(hook: Hook) -> Shape:
    return {
        "type": "Repository",
        "id": hook.id,
        "name": "web",
        "active": True,
        "events": sorted(hook.events) or ["*"],
        "config": {"url": hook.url, "content_type": hook.content_type, "insecure_ssl": "0"},
    }


def _delivery(one: Delivery, attempt: Attempt, number: int) -> Shape:
    return {
        "id": number,
        "guid": one.guid,
        "delivered_at": stamp(attempt.at),
        "redelivery": attempt.redelivery,
        "duration": 0.1,
        "status": "OK" if 200 <= attempt.status < 300 else "failed to connect to host",
        "status_code": attempt.status,
        "event": one.event,
        "action": one.action or None,
        "installation_id": None,
        "repository_id": one.repository_id,
    }
