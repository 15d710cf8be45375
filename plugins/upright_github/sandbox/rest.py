"""REST: the calls that we make, refused where GitHub refuses them, with its own bodies.

Source: docs.github.com, REST API version 2022-11-28.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from typing import Any, Final

from aiohttp import web

from upright_github.comments import MAX_BODY_CHARS
from upright_github.sandbox import ci_shapes
from upright_github.sandbox.faults import Faults, RestFault, RestRule
from upright_github.sandbox.limits import Limits
from upright_github.sandbox.shapes import Shape
from upright_github.sandbox.story import Story
from upright_github.sandbox.world import Issue, NotThereError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

DOCS: Final = "https://docs.github.com/rest"
VERSIONS: Final = frozenset({"", "2022-11-28"})
ACCEPTED: Final = frozenset(
    {"", "*/*", "application/json", "application/vnd.github+json", "application/vnd.github.v3+json"}
)
CALLS_AN_HOUR: Final = 5_000
HANG_S: Final = 60.0
MAX_CALLS_KEPT: Final = 10_000
SECONDARY: Final = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
_FORBIDDEN: Final = (
    "Request forbidden by administrative rules. "
    "Please make sure your request has a User-Agent header"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One REST call that was made, and the status of its answer (0: none was given)."""

    method: str
    path: str
    status: int


@dataclass(slots=True)
class Rest:
    """The REST API of one sandbox."""

    story: Story
    token: str
    faults: Faults
    closing: asyncio.Event
    hanging: asyncio.Event = field(default_factory=asyncio.Event)  # a call waits for its answer
    log: dict[int, Call] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    used: int = 0
    seen: int = 0
    poll_interval_s: int = 0  # what pollers are asked to wait; 0: nothing is said
    more: Sequence[tuple[str, str, Handler]] = ()  # method, path, handler

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        thread = "/repos/{owner}/{name}/issues/{number:\\d+}"
        return [
            web.get("/user", self._answering(self._user)),
            web.get("/rate_limit", self._answering(self._limits)),
            web.get("/repos/{owner}/{name}", self._answering(self._repository)),
            web.get("/repos/{owner}/{name}/pulls", self._answering(self._pulls)),
            web.get("/repos/{owner}/{name}/pulls/{number:\\d+}", self._answering(self._pull)),
            web.get("/repos/{owner}/{name}/issues/comments", self._answering(self._all_comments)),
            web.get(thread, self._answering(self._issue)),
            web.get(f"{thread}/comments", self._answering(self._comments)),
            web.post(f"{thread}/comments", self._answering(self._create_comment)),
            web.get("/repos/{owner}/{name}/issues", self._answering(self._issues)),
            web.get("/repos/{owner}/{name}/actions/runs", self._answering(self._runs)),
            web.get(
                "/repos/{owner}/{name}/commits/{ref}/check-runs", self._answering(self._checks)
            ),
            *(web.route(method, path, self._answering(how)) for method, path, how in self.more),
            web.route("*", "/{rest:.*}", self._answering(self._nothing)),
        ]

    def _answering(self, handler: Handler) -> Handler:
        """Wrap a handler with what holds for every call: the door, faults, limits, the log."""

        async def answer(request: web.Request) -> web.StreamResponse:
            self.seen += 1
            number, call = self.seen, Call(method=request.method, path=request.path_qs, status=0)
            self.log[number] = call
            self.log.pop(number - MAX_CALLS_KEPT, None)
            self.limits.under_way += 1
            try:
                response = await self._answer(request, handler)
            finally:
                self.limits.under_way -= 1
            self.log[number] = replace(call, status=response.status)
            return response

        return answer

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the calls, in the order in which they came."""
        return tuple(self.log.values())

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if refused := self._door(request):
            return refused
        if not self.limits.spend(request.method, self.story.world.now()):
            return refusal(403, SECONDARY)
        self.used += 1
        rule = self.faults.on_call(request.method)
        if rule is None:
            return self._fresh(request, self._limited(await self._handled(request, handler)))
        if rule.done:
            await self._handled(request, handler)  # it took effect; only the answer is lost
        return await self._spoil(request, rule)

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except NotThereError:
            return refusal(404, "Not Found")

    def _door(self, request: web.Request) -> web.Response | None:
        """Refuse what GitHub refuses before it looks at the path."""
        headers = request.headers
        if not headers.get("User-Agent"):
            return web.Response(status=403, text=_FORBIDDEN)
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if not token:
            return refusal(401, "Requires authentication")
        if scheme.lower() not in {"bearer", "token"} or token.strip() != self.token:
            return refusal(401, "Bad credentials")
        accept = headers.get("Accept", "").partition(";")[0].partition(",")[0].strip()
        if accept not in ACCEPTED:
            return refusal(415, f"Unsupported 'Accept' header: {accept!r}.")
        version = headers.get("X-GitHub-Api-Version", "")
        if version not in VERSIONS:
            return refusal(400, f"The API version {version!r} is not supported.")
        return None

    def _fresh(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """Give what was read an ETag; what has not changed since is 304, and counts as no call."""
        if request.method != "GET" or response.status != 200:
            return response
        body = response.body if isinstance(response, web.Response) else None
        etag = f'W/"{hashlib.sha256(body if isinstance(body, bytes) else b"").hexdigest()}"'
        if request.headers.get("If-None-Match") == etag:
            self.used -= 1
            response = self._limited(web.Response(status=304))
        response.headers["ETag"] = etag
        if self.poll_interval_s:
            response.headers["X-Poll-Interval"] = str(self.poll_interval_s)
        return response

    def _limited(self, response: web.StreamResponse) -> web.StreamResponse:
        left = max(CALLS_AN_HOUR - self.used, 0)
        response.headers.update(self._rate(left))
        return response

    def _rate(self, left: int, *, reset_in_s: int = 3_600) -> dict[str, str]:
        now = self.story.world.now()
        reset = int(now.timestamp()) + reset_in_s
        return {
            "Date": format_datetime(now, usegmt=True),
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": f"SANDBOX:{self.used}",
            "X-OAuth-Scopes": "repo",
            "X-RateLimit-Limit": str(CALLS_AN_HOUR),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": str(reset),
            "X-RateLimit-Resource": "core",
            "X-RateLimit-Used": str(CALLS_AN_HOUR - left),
        }

    async def _spoil(self, request: web.Request, rule: RestRule) -> web.StreamResponse:
        match rule.fault:
            case RestFault.SECONDARY:
                return self._limited(refusal(403, SECONDARY))
            case RestFault.SECONDARY_RETRY_AFTER:
                response = self._limited(refusal(403, SECONDARY))
                response.headers["Retry-After"] = "7"
                return response
            case RestFault.PRIMARY:
                response = refusal(403, "API rate limit exceeded for user ID 1.")
                response.headers.update(self._rate(0, reset_in_s=90))
                return response
            case RestFault.GARBLED:
                return web.Response(status=201 if request.method == "POST" else 200, text="<html>")
            case RestFault.HANG | RestFault.DROP:
                return await self._silent(request, hang=rule.fault is RestFault.HANG)
            case RestFault.ERROR_500 | RestFault.ERROR_502 | RestFault.ERROR_503:
                return refusal(int(rule.fault), "Server Error")

    async def _silent(self, request: web.Request, *, hang: bool) -> web.StreamResponse:
        if hang:
            self.hanging.set()
            # A minute of silence is enough: by then the client has long gone.
            with suppress(TimeoutError):
                async with asyncio.timeout(HANG_S):
                    await self.closing.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)  # goes nowhere: the socket is closed

    async def _user(self, _request: web.Request) -> web.StreamResponse:
        world = self.story.world
        return web.json_response(self.story.shapes.user(world.login))

    async def _limits(self, _request: web.Request) -> web.StreamResponse:
        self.used -= 1  # asking costs nothing
        reset = int(self.story.world.now().timestamp()) + 3_600
        left = max(CALLS_AN_HOUR - self.used, 0)
        core = {"limit": CALLS_AN_HOUR, "remaining": left, "reset": reset, "used": self.used}
        return web.json_response({"resources": {"core": core}, "rate": core})

    async def _repository(self, request: web.Request) -> web.StreamResponse:
        repository = self.story.world.repository(repo_of(request))
        return web.json_response(self.story.shapes.repository(repository))

    async def _pulls(self, request: web.Request) -> web.StreamResponse:
        repo = self.story.world.repository(repo_of(request)).full_name
        issues = [one for one in self.story.world.issues.values() if one.pull and one.repo == repo]
        wanted = request.query.get("state", "open")
        shapes = [self.story.shapes.pull(one) for one in reversed(issues)]
        return self.page(request, [one for one in shapes if wanted in {"all", one["state"]}])

    async def _pull(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.story.shapes.pull(self._thread(request)))

    async def _issue(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.story.shapes.issue(self._thread(request)))

    async def _comments(self, request: web.Request) -> web.StreamResponse:
        issue = self._thread(request)
        comments = self.story.world.comments_of(issue.repo, issue.number)
        return self.page(request, [self.story.shapes.comment(one) for one in comments])

    async def _all_comments(self, request: web.Request) -> web.StreamResponse:
        """List the comments of a repository that changed since, the longest unchanged first."""
        repo, since = repo_of(request).lower(), request.query.get("since", "")
        self.story.world.repository(repo)
        there = [one for one in self.story.world.comments.values() if one.repo.lower() == repo]
        shapes = [self.story.shapes.comment(one) for one in there]
        changed = [one for one in shapes if one["updated_at"] >= since]
        return self.page(request, sorted(changed, key=lambda one: str(one["updated_at"])))

    async def _issues(self, request: web.Request) -> web.StreamResponse:
        """List issues and pull requests that changed since, the longest unchanged first."""
        repo, since = repo_of(request).lower(), request.query.get("since", "")
        self.story.world.repository(repo)
        there = [one for one in self.story.world.issues.values() if one.repo.lower() == repo]
        wanted = request.query.get("state", "open")
        shapes = [self.story.shapes.issue(one) for one in there]
        shown = [one for one in shapes if wanted in {"all", one["state"]}]
        changed = [one for one in shown if one["updated_at"] >= since]
        return self.page(request, sorted(changed, key=lambda one: str(one["updated_at"])))

    async def _runs(self, request: web.Request) -> web.StreamResponse:
        """List workflow runs, the newest first."""
        world, repo = self.story.world, repo_of(request).lower()
        world.repository(repo)
        flows = [one for one in world.runs.values() if one.id in world.flows]
        shapes = [
            ci_shapes.workflow_run(self.story.shapes, one)
            for one in sorted(flows, key=lambda one: -one.id)
            if one.repo.lower() == repo
        ]
        return self._inside(request, "workflow_runs", shapes)

    async def _checks(self, request: web.Request) -> web.StreamResponse:
        """List the check runs of a commit, or of the head of a branch."""
        world, repo, ref = self.story.world, repo_of(request).lower(), request.match_info["ref"]
        world.repository(repo)
        shapes = [
            ci_shapes.check_run(self.story.shapes, one)
            for one in world.runs.values()
            if one.id not in world.flows
            and one.repo.lower() == repo
            and ref in {one.sha, one.branch}
        ]
        return self._inside(request, "check_runs", shapes)

    def _inside(self, request: web.Request, key: str, everything: list[Shape]) -> web.Response:
        """Return a page inside an object that counts them all."""
        page = self.page(request, everything)
        told = {"total_count": len(everything), key: json.loads(page.text or "[]")}
        page.body = json.dumps(told).encode()
        return page

    async def _create_comment(self, request: web.Request) -> web.StreamResponse:
        issue = self._thread(request)
        if issue.locked:
            return refusal(403, "Unable to create comment because issue is locked.")
        body = _body_of(await request.read())
        if isinstance(body, web.Response):
            return body
        if not self.limits.create(self.story.world.now()):
            return refusal(403, SECONDARY)
        shape, _ = self.story.comment(issue, body, self.story.world.login)
        return web.json_response(shape, status=201, headers={"Location": shape["url"]})

    async def _nothing(self, _request: web.Request) -> web.StreamResponse:
        return refusal(404, "Not Found")

    def _thread(self, request: web.Request) -> Issue:
        return self.story.world.issue(repo_of(request), int(request.match_info["number"]))

    def page(self, request: web.Request, everything: list[Shape]) -> web.Response:
        """Return one page of a list, with the links to the others."""
        size = min(max(_number(request.query, "per_page", 30), 1), 100)
        page, last = max(_number(request.query, "page", 1), 1), -(-len(everything) // size)
        links = []
        if page < last:
            links = [(page + 1, "next"), (last, "last")]
        if page > 1:
            links += [(1, "first"), (page - 1, "prev")]
        found = [
            f'<{self.story.shapes.base}{request.path}?per_page={size}&page={to}>; rel="{name}"'
            for to, name in links
        ]
        headers = {"Link": ", ".join(found)} if found else {}
        return web.json_response(everything[(page - 1) * size : page * size], headers=headers)


def refusal(status: int, message: str, errors: list[Shape] | None = None) -> web.Response:
    """Return an error as GitHub words it."""
    told: Shape = {"message": message, "documentation_url": DOCS, "status": str(status)}
    if errors:
        told["errors"] = errors
    return web.json_response(told, status=status)


def repo_of(request: web.Request) -> str:
    """Return the full name in a path."""
    return f"{request.match_info['owner']}/{request.match_info['name']}"


def _number(query: Mapping[str, str], key: str, otherwise: int) -> int:
    value = query.get(key, "")
    return int(value) if value.isascii() and value.isdigit() else otherwise


def _body_of(raw: bytes) -> str | web.Response:
    """Return the text of a new comment, or the refusal of it."""
    try:
        value: Any = json.loads(raw)
    except ValueError:
        return refusal(400, "Problems parsing JSON")
    if not isinstance(value, dict):
        return refusal(400, "Body should be a JSON object")
    body = value.get("body")
    if body is not None and not isinstance(body, str):
        shown = json.dumps(body)[:80]
        return refusal(422, f"Invalid request.\n\nFor 'properties/body', {shown} is not a string.")
    wrong = _wrong_with(body)
    return refusal(422, "Validation Failed", [wrong]) if wrong else str(body)


def _wrong_with(body: str | None) -> Shape | None:
    told: Shape = {"resource": "IssueComment", "field": "body"}
    if body is None:
        return {**told, "code": "missing_field"}
    if not body.strip():
        return {**told, "code": "custom", "message": "body can't be blank"}
    if len(body) > MAX_BODY_CHARS:
        said = f"body is too long (maximum is {MAX_BODY_CHARS} characters)"
        return {**told, "code": "custom", "message": said}
    return None
