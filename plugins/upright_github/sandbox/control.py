"""Control: how a demo or a test tells the sandbox what happens. Loopback only, no sign-in.

All bodies are JSON objects; an unknown key is refused. Answers hold what is there now, and under
``deliveries`` the GUIDs of the webhooks that tell it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Final

from aiohttp import web

from upright.api import TriggerRejectedError
from upright.kit.payload import Json
from upright_github.sandbox.faults import DeliveryFault, DeliveryRule, RestFault, RestRule
from upright_github.sandbox.postman import Hook
from upright_github.sandbox.rest import Rest, repo_of
from upright_github.sandbox.story import Told
from upright_github.sandbox.world import NO_COMMIT, Commit, Issue, NotThereError, Pull, Push, Run

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Body = Callable[[web.Request, Json], Awaitable[web.StreamResponse]]

PREFIX: Final = "/_sandbox"
SETTLE_S: Final = 15.0
_REPO: Final = PREFIX + "/repos/{owner}/{name}"
_THREAD: Final = _REPO + "/issues/{number:\\d+}"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost"})


class Control:
    """The control API over one sandbox."""

    def __init__(self, rest: Rest, secret: str) -> None:
        self._rest = rest
        self._secret = secret
        self._story = rest.story
        self._world = rest.story.world
        self._postman = rest.story.postman

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        run = "id name sha branch status conclusion title summary text app actor attempt pulls"
        return [
            web.get(PREFIX, self._plain(self._health)),
            web.get(f"{PREFIX}/calls", self._plain(self._calls)),
            web.get(f"{PREFIX}/deliveries", self._plain(self._deliveries)),
            web.get(f"{PREFIX}/deliveries/{{guid}}", self._plain(self._delivery)),
            web.post(f"{PREFIX}/deliveries/{{guid}}/redeliver", self._plain(self._redeliver)),
            web.post(f"{PREFIX}/settle", self._plain(self._settle)),
            web.post(f"{PREFIX}/hooks", self._with("url secret content_type events", self._hook)),
            web.post(
                f"{PREFIX}/faults",
                self._with("on fault count method done event conclusion delay_s", self._fault),
            ),
            web.delete(f"{PREFIX}/faults", self._plain(self._no_faults)),
            web.post(
                f"{PREFIX}/repos",
                self._with("full_name clone_url default_branch private", self._repository),
            ),
            web.post(
                f"{_REPO}/pulls",
                self._with("title body head sha author base base_sha head_repo", self._pull),
            ),
            web.post(f"{_REPO}/issues", self._with("title body author", self._issue)),
            web.get(f"{_THREAD}/comments", self._plain(self._comments)),
            web.post(f"{_THREAD}/comments", self._with("body author", self._comment)),
            web.post(f"{_THREAD}/{{change}}", self._with("author", self._change)),
            web.patch(f"{_REPO}/comments/{{id:\\d+}}", self._with("body author", self._edit)),
            web.delete(f"{_REPO}/comments/{{id:\\d+}}", self._plain(self._delete)),
            web.post(
                f"{_REPO}/pushes", self._with("branch ref before after author commits", self._push)
            ),
            web.post(f"{_REPO}/check-runs", self._with(run, self._check_run)),
            web.post(f"{_REPO}/workflow-runs", self._with(run, self._workflow_run)),
        ]

    # ---------------------------------------------------------------- the frame
    def _plain(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            if refused := _from_elsewhere(request):
                return refused
            try:
                return await handler(request)
            except NotThereError as error:
                return web.json_response({"error": f"There is no {error}"}, status=404)
            except TriggerRejectedError as error:
                return web.json_response({"error": error.reason}, status=422)

        return answer

    def _with(self, keys: str, handler: Body) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                value: Any = json.loads(await request.read() or b"{}")
            except ValueError:
                value = None
            if not isinstance(value, dict):
                return web.json_response({"error": "The body is no JSON object"}, status=400)
            if unknown := sorted(value.keys() - set(keys.split())):
                said = f"Unknown keys: {', '.join(unknown)}; known: {keys}"
                return web.json_response({"error": said}, status=422)
            return await handler(request, Json(value))

        return self._plain(answer)

    # ---------------------------------------------------------------- the sandbox itself
    async def _health(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"sandbox": "github", "url": self._story.shapes.base})

    async def _calls(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response([asdict(call) for call in self._rest.calls])

    async def _deliveries(self, request: web.Request) -> web.StreamResponse:
        event = request.query.get("event", "")
        found = self._postman.deliveries.values()
        return web.json_response([one.told() for one in found if event in {"", one.event}])

    async def _delivery(self, request: web.Request) -> web.StreamResponse:
        delivery = self._postman.delivery(request.match_info["guid"])
        body = delivery.body.decode("utf-8", "replace")
        return web.json_response({**delivery.told(), "headers": delivery.headers(), "body": body})

    async def _redeliver(self, request: web.Request) -> web.StreamResponse:
        guid = request.match_info["guid"]
        self._postman.redeliver(guid)
        return web.json_response({"deliveries": [guid]}, status=202)

    async def _settle(self, _request: web.Request) -> web.StreamResponse:
        settled = await self._postman.settle(SETTLE_S)
        return web.json_response({"settled": settled})

    async def _hook(self, _request: web.Request, body: Json) -> web.StreamResponse:
        kind = body.maybe_text("content_type") or "json"
        if kind not in {"json", "form"}:
            body.refuse("content_type", '"json" or "form"')
        events = body.value.get("events", [])
        if not isinstance(events, list) or not all(isinstance(one, str) for one in events):
            body.refuse("events", "list of names")
        hook = Hook(
            id=self._world.new_id(),
            url=body.text("url"),
            secret=body.maybe_text("secret") or self._secret,
            content_type=kind,
            events=frozenset(events),
        )
        return _told(self._story.hook(hook))

    async def _fault(self, _request: web.Request, body: Json) -> web.StreamResponse:
        count, wanted = body.maybe_number("count") or 1, body.text("fault")
        kinds = DeliveryFault if body.maybe_text("on") == "delivery" else RestFault
        if wanted not in list(kinds):
            body.refuse("fault", f"one of {', '.join(kinds)}")
        if kinds is DeliveryFault:
            delay = body.value.get("delay_s", 0.0)
            rule = DeliveryRule(
                fault=DeliveryFault(wanted),
                count=count,
                event=body.maybe_text("event"),
                conclusion=body.maybe_text("conclusion"),
                delay_s=float(delay) if isinstance(delay, int | float) else 0.0,
            )
            self._rest.faults.delivery.append(rule)
            return web.json_response(asdict(rule), status=201)
        call = RestRule(
            fault=RestFault(wanted),
            count=count,
            method=body.maybe_text("method"),
            done=body.flag("done"),
        )
        self._rest.faults.rest.append(call)
        return web.json_response(asdict(call), status=201)

    async def _no_faults(self, _request: web.Request) -> web.StreamResponse:
        self._rest.faults.clear()
        return web.json_response({})

    # ---------------------------------------------------------------- the world
    async def _repository(self, _request: web.Request, body: Json) -> web.StreamResponse:
        made = self._world.add_repository(
            body.text("full_name"),
            body.maybe_text("clone_url"),
            default_branch=body.maybe_text("default_branch") or "main",
            private=body.flag("private"),
        )
        return web.json_response(self._story.shapes.repository(made), status=201)

    async def _issue(self, request: web.Request, body: Json) -> web.StreamResponse:
        return _told(self._story.open_issue(self._new_issue(request, body)))

    async def _pull(self, request: web.Request, body: Json) -> web.StreamResponse:
        repository = self._world.repository(repo_of(request))
        fork = body.maybe_text("head_repo") or repository.full_name
        pull = Pull(
            id=self._world.new_id(),
            head=body.text("head"),
            sha=body.text("sha"),
            head_repo=self._world.repository(fork).full_name,
            base=body.maybe_text("base") or repository.default_branch,
            base_sha=body.maybe_text("base_sha") or NO_COMMIT,
        )
        return _told(self._story.open_issue(replace(self._new_issue(request, body), pull=pull)))

    def _new_issue(self, request: web.Request, body: Json) -> Issue:
        repository, now = self._world.repository(repo_of(request)), self._world.now()
        return Issue(
            id=self._world.new_id(),
            repo=repository.full_name,
            number=self._world.next_number(repository.full_name),
            title=body.text("title"),
            body=body.maybe_text("body"),
            author=self._world.account(body.text("author")).login,
            created_at=now,
            updated_at=now,
        )

    async def _change(self, request: web.Request, body: Json) -> web.StreamResponse:
        changes = {"close": "closed", "merge": "merged", "reopen": "reopened", "lock": "locked"}
        action = changes.get(request.match_info["change"])
        if action is None:
            raise NotThereError("change", request.match_info["change"])
        issue = self._thread(request)
        if action == "locked":
            issue = replace(issue, locked=True)
        return _told(self._story.change_issue(issue, action, body.text("author")))

    def _thread(self, request: web.Request) -> Issue:
        return self._world.issue(repo_of(request), int(request.match_info["number"]))

    async def _comments(self, request: web.Request) -> web.StreamResponse:
        issue = self._thread(request)
        comments = self._world.comments_of(issue.repo, issue.number)
        return web.json_response([self._story.shapes.comment(one) for one in comments])

    async def _comment(self, request: web.Request, body: Json) -> web.StreamResponse:
        issue = self._thread(request)
        return _told(self._story.comment(issue, body.text("body"), body.text("author")))

    async def _edit(self, request: web.Request, body: Json) -> web.StreamResponse:
        comment = self._world.comment(int(request.match_info["id"]))
        return _told(self._story.edit_comment(comment, body.text("body"), body.text("author")))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        comment = self._world.comment(int(request.match_info["id"]))
        return _told(self._story.delete_comment(comment, comment.author))

    async def _push(self, request: web.Request, body: Json) -> web.StreamResponse:
        repository = self._world.repository(repo_of(request))
        branch = body.maybe_text("branch")
        push = Push(
            ref=f"refs/heads/{branch}" if branch else body.text("ref"),
            before=body.maybe_text("before") or NO_COMMIT,
            after=body.text("after"),
            author=body.text("author"),
            commits=tuple(
                Commit(
                    id=one.text("id"),
                    message=one.maybe_text("message"),
                    distinct=one.flag("distinct") or "distinct" not in one.value,
                )
                for one in body.parts("commits")
            ),
        )
        return _told(self._story.push(repository.full_name, push))

    async def _check_run(self, request: web.Request, body: Json) -> web.StreamResponse:
        return _told(self._story.check_run(self._run(request, body, "sandbox-ci")))

    async def _workflow_run(self, request: web.Request, body: Json) -> web.StreamResponse:
        return _told(self._story.workflow_run(self._run(request, body, "github-actions")))

    def _run(self, request: web.Request, body: Json, app: str) -> Run:
        """Read a run. ``pulls: false`` names no pull request, as GitHub often does."""
        repo, now = self._world.repository(repo_of(request)).full_name, self._world.now()
        branch, status = body.maybe_text("branch"), body.maybe_text("status") or "completed"
        known = self._world.runs.get(body.maybe_number("id") or 0)
        names = "pulls" not in body.value or body.flag("pulls")
        pulls = self._world.pulls_of(repo, branch) if names and branch else ()
        done = status == "completed"
        return Run(
            id=body.maybe_number("id") or self._world.new_id(),
            repo=repo,
            name=body.text("name"),
            sha=body.text("sha"),
            branch=branch,
            status=status,
            conclusion=body.text("conclusion") if done else "",
            started_at=known.started_at if known else now,
            completed_at=now if done else None,
            app=body.maybe_text("app") or app,
            actor=body.maybe_text("actor") or repo.partition("/")[0],
            title=body.maybe_text("title"),
            summary=body.maybe_text("summary"),
            text=body.maybe_text("text"),
            attempt=body.maybe_number("attempt") or 1,
            named=tuple(pull.number for pull in pulls),
        )


def _told(told: Told) -> web.Response:
    shape, guids = told
    return web.json_response({**shape, "deliveries": guids}, status=201)


def _from_elsewhere(request: web.Request) -> web.Response | None:
    """Refuse a web page, also one that calls us by a name of its own."""
    host = request.host.rpartition(":")[0] or request.host
    if host in _LOCAL and "Origin" not in request.headers:
        return None
    return web.json_response({"error": "Only programs of this machine may ask"}, status=403)
