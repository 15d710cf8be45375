"""The sandbox: as strict as GitHub where we could be careless, and it tells what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fixtures.connector import MemoryContext
from fixtures.github import BOT, SECRET, TOKEN, context, started
from upright.api import ActorKind, InboundRequest, Trigger, TriggerRejectedError
from upright_github.connector import GitHubConnector
from upright_github.sandbox.server import Options, Sandbox, running

REPO = "/repos/acme/app"
COMMENTS = f"{REPO}/issues/1/comments"
GOOD = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "tests"}


# JSON as the control API answers: an object, or a list of them.
Answer = Any


@dataclass(slots=True)
class Hub:
    """A door for webhooks, with the connector behind it."""

    connector: GitHubConnector
    status: int = 202
    requests: list[InboundRequest] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        inbound = InboundRequest(headers=headers, body=await request.read())
        self.requests.append(inbound)
        try:
            self.triggers += await self.connector.receive(inbound)
        except TriggerRejectedError as error:
            return web.Response(status=error.status)
        return web.Response(status=self.status)

    @property
    def events(self) -> list[str]:
        return [request.headers["x-github-event"] for request in self.requests]


@dataclass(frozen=True, slots=True)
class World:
    """A sandbox, a client of it, and the hub that its webhooks reach."""

    sandbox: Sandbox
    session: aiohttp.ClientSession
    hub: Hub
    hook_url: str
    memory: MemoryContext

    async def tell(self, path: str, body: object = None, method: str = "POST") -> Answer:
        url = self.sandbox.control + path
        async with self.session.request(method, url, json=body) as response:
            assert response.status < 300, await response.text()
            answer: Answer = await response.json()
            return answer

    async def settle(self) -> None:
        assert await self.tell("/settle") == {"settled": True}

    async def call(
        self, method: str, path: str, data: bytes | None = None, /, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        sent = {**GOOD, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self.session.request(
            method, self.sandbox.url + path, data=data, headers=sent
        ) as response:
            json = response.content_type == "application/json"
            body = await response.json() if json else await response.text()
            return response.status, body, dict(response.headers)

    async def deliveries(self, event: str) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = await self.tell(
            f"/deliveries?event={event}", method="GET"
        )
        return found


@asynccontextmanager
async def hooked(*, secret: str = "", content_type: str = "json") -> AsyncIterator[World]:
    memory, numbers = context(), iter(range(10_000))
    options = Options(token=TOKEN, secret=SECRET, login=BOT)
    async with (
        started(memory) as connector,
        listening(Hub(connector)) as (hub, url),
        running(options, now=memory.now, new_guid=lambda: f"guid-{next(numbers)}") as sandbox,
        aiohttp.ClientSession() as session,
    ):
        world = World(sandbox, session, hub, url, memory)
        body = {"full_name": "acme/app", "clone_url": "/srv/remote.git"}
        await world.tell("/repos", body)
        hook = {"url": url, "content_type": content_type, **({"secret": secret} if secret else {})}
        await world.tell("/hooks", hook)
        pull = {"title": "Fix", "head": "fix", "sha": "a" * 40, "author": "ann"}
        await world.tell(f"{REPO}/pulls", pull)
        await world.settle()
        yield world


@asynccontextmanager
async def listening(hub: Hub) -> AsyncIterator[tuple[Hub, str]]:
    app = web.Application()
    app.router.add_post("/hooks/github", hub.receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield hub, f"{site.name}/hooks/github" if ":0" not in site.name else _url(runner)
    finally:
        await runner.cleanup()


def _url(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}/hooks/github"


# ------------------------------------------------------------------ what is told
async def test_a_red_and_a_green_check_reach_the_thread_of_their_pull_request() -> None:
    async with hooked() as world:
        commit = {"id": "c" * 40, "message": "Fix it"}
        red = {"name": "unit", "branch": "fix", "sha": "a" * 40, "conclusion": "failure"}
        push = {"branch": "fix", "before": "a" * 40, "after": "c" * 40, "author": BOT}
        green = {"name": "unit", "branch": "fix", "sha": "c" * 40, "conclusion": "success"}
        await world.tell(f"{REPO}/check-runs", red | {"title": "1 failed", "text": "E assert"})
        await world.settle()
        await world.tell(f"{REPO}/pushes", push | {"commits": [commit]})
        await world.settle()
        await world.tell(f"{REPO}/check-runs", green | {"pulls": False})
        await world.settle()
        opened, failed, *moved, passed = world.hub.triggers
        assert (opened.kind, failed.kind, passed.kind) == (
            "pr.opened",
            "ci.failed",
            "ci.succeeded",
        )
        assert sorted(trigger.kind for trigger in moved) == ["pr.synchronize", "push"]
        assert {trigger.actor.kind for trigger in moved} == {ActorKind.SELF}
        assert failed.context.thread == opened.context.thread
        assert failed.content.text == "1 failed\n\nE assert"
        assert passed.context.thread in opened.context.joins
        assert failed.context.code is not None
        assert "/srv/remote.git" in failed.context.code.urls


async def test_a_comment_of_ours_comes_back_as_our_own() -> None:
    async with hooked() as world:
        status, made, _ = await world.call("POST", COMMENTS, b'{"body": "Done."}')
        await world.settle()
        trigger = world.hub.triggers[-1]
        assert (status, made["user"]["login"]) == (201, BOT)
        assert (trigger.kind, trigger.actor.kind) == ("comment.created", ActorKind.SELF)


async def test_a_comment_is_made_edited_and_deleted() -> None:
    async with hooked() as world:
        said = {"body": f"@{BOT} look", "author": "bea"}
        made = await world.tell(f"{REPO}/issues/1/comments", said)
        await world.settle()
        there = f"{REPO}/comments/{made['id']}"
        await world.tell(there, {"body": "look again", "author": "bea"}, "PATCH")
        await world.settle()
        await world.tell(there, method="DELETE")
        await world.settle()
        kinds = [trigger.kind for trigger in world.hub.triggers[1:]]
        assert kinds == ["comment.created", "comment.edited", "comment.deleted"]
        assert await world.tell(f"{REPO}/issues/1/comments", method="GET") == []


@pytest.mark.parametrize(
    ("change", "kind"), [("merge", "pr.merged"), ("close", "pr.closed"), ("lock", "pr.locked")]
)
async def test_a_pull_request_changes(change: str, kind: str) -> None:
    async with hooked() as world:
        await world.tell(f"{REPO}/issues/1/{change}", {"author": "ann"})
        await world.settle()
        assert world.hub.triggers[-1].kind == kind


async def test_an_issue_and_a_workflow_run_are_told() -> None:
    async with hooked() as world:
        await world.tell(f"{REPO}/issues", {"title": "Broken", "author": "bea"})
        await world.settle()
        run = {"name": "CI", "branch": "main", "sha": "a" * 40, "conclusion": "failure"}
        await world.tell(f"{REPO}/workflow-runs", run)
        await world.settle()
        issue, failed = world.hub.triggers[-2:]
        assert (issue.kind, failed.kind) == ("issue.opened", "ci.failed")
        assert failed.context.thread.endswith("/acme/app/ci/main/CI")


async def test_a_form_hook_is_understood_too() -> None:
    async with hooked(content_type="form") as world:
        assert [trigger.kind for trigger in world.hub.triggers] == ["pr.opened"]
        assert world.hub.triggers[0].raw_type == "application/x-www-form-urlencoded"


async def test_another_secret_is_refused_and_the_answer_is_kept() -> None:
    async with hooked(secret="another") as world:
        (delivery,) = await world.deliveries("pull_request")
        assert delivery["status"] == 401
        assert not world.hub.triggers


# ------------------------------------------------------------------ deliveries
async def test_a_redelivery_has_the_same_guid_and_bytes() -> None:
    async with hooked() as world:
        (delivery,) = await world.deliveries("pull_request")
        await world.tell(f"/deliveries/{delivery['guid']}/redeliver")
        await world.settle()
        first, second = (r for r in world.hub.requests if "pull" in r.headers["x-github-event"])
        assert first == second
        assert world.hub.triggers[0] == world.hub.triggers[1]
        (delivery,) = await world.deliveries("pull_request")
        assert [attempt["redelivery"] for attempt in delivery["attempts"]] == [False, True]


async def test_a_failed_delivery_is_not_tried_again_by_itself() -> None:
    async with hooked() as world:
        world.hub.status = 500
        await world.tell(f"{REPO}/issues", {"title": "Broken", "author": "bea"})
        await world.settle()
        (delivery,) = await world.deliveries("issues")
        assert delivery["status"] == 500
        assert world.hub.events.count("issues") == 1


async def test_a_hub_that_is_away_gets_it_when_it_is_asked_for() -> None:
    async with hooked() as world:
        nowhere = {"url": "http://127.0.0.1:9/hooks/github", "events": ["issues"]}
        await world.tell("/hooks", nowhere)
        await world.tell(f"{REPO}/issues", {"title": "Broken", "author": "bea"})
        await world.settle()
        here, away = await world.deliveries("issues")
        assert (here["status"], away["status"]) == (202, 0)
        assert here["guid"] != away["guid"]


@pytest.mark.parametrize(("fault", "came"), [("drop", 0), ("delay", 1), ("duplicate", 2)])
async def test_a_delivery_is_dropped_delayed_or_doubled_on_demand(fault: str, came: int) -> None:
    async with hooked() as world:
        rule = {"on": "delivery", "fault": fault, "event": "check_run", "conclusion": "success"}
        await world.tell("/faults", rule | {"delay_s": 0.05})
        run = {"name": "unit", "branch": "fix", "sha": "a" * 40}
        for conclusion in ("failure", "success", "success"):
            await world.tell(f"{REPO}/check-runs", run | {"conclusion": conclusion})
        await world.settle()
        kinds = [trigger.kind for trigger in world.hub.triggers[1:]]
        assert kinds.count("ci.failed") == 1
        assert kinds.count("ci.succeeded") == came + 1


async def test_a_dropped_delivery_can_be_asked_for() -> None:
    async with hooked() as world:
        await world.tell("/faults", {"on": "delivery", "fault": "drop", "count": 2})
        await world.tell(f"{REPO}/issues", {"title": "Broken", "author": "bea"})
        await world.settle()
        (delivery,) = await world.deliveries("issues")
        assert (delivery["status"], world.hub.events.count("issues")) == (0, 0)
        await world.tell(f"/deliveries/{delivery['guid']}/redeliver")
        await world.settle()
        assert world.hub.triggers[-1].kind == "issue.opened"


async def test_a_webhook_has_the_headers_of_the_real_one() -> None:
    async with hooked() as world:
        headers = world.hub.requests[-1].headers
        assert headers["user-agent"].startswith("GitHub-Hookshot/")
        assert headers["x-hub-signature"].startswith("sha1=")
        assert headers["x-github-hook-installation-target-type"] == "repository"
        assert "ping" in world.hub.events


# ------------------------------------------------------------------ strictness
@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({"Authorization": "Bearer other"}, 401, "Bad credentials"),
        ({"Authorization": "Basic eA=="}, 401, "Bad credentials"),
        ({"Authorization": ""}, 401, "Requires authentication"),
        ({"Accept": "text/html"}, 415, "Unsupported 'Accept' header"),
        ({"X_GitHub_Api_Version": "1999-01-01"}, 400, "not supported"),
    ],
)
@pytest.mark.feature("github.sandbox")
async def test_a_call_with_wrong_headers_is_refused_as_github_does(
    headers: dict[str, str], status: int, message: str
) -> None:
    async with hooked() as world:
        got, body, _ = await world.call("GET", "/user", **headers)
        assert got == status
        assert message in body["message"]
        assert body["documentation_url"].startswith("https://docs.github.com/")


async def test_a_call_without_a_user_agent_is_refused() -> None:
    async with hooked() as world:
        status, text, _ = await world.call("GET", "/user", User_Agent="")
        assert status == 403
        assert "User-Agent" in text


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"{", 400, "Problems parsing JSON"),
        (b"[]", 400, "Body should be a JSON object"),
        (b"{}", 422, "Validation Failed"),
        (b'{"body": " "}', 422, "Validation Failed"),
        (b'{"body": 7}', 422, "Invalid request"),
        (b'{"body": "%s"}' % (b"x" * 65_537), 422, "Validation Failed"),
    ],
)
@pytest.mark.feature("github.sandbox")
async def test_a_bad_comment_is_refused_and_not_made(
    data: bytes, status: int, message: str
) -> None:
    async with hooked() as world:
        got, body, _ = await world.call("POST", COMMENTS, data)
        assert got == status
        assert message in body["message"]
        assert not world.sandbox.world.comments


@pytest.mark.parametrize(
    "path", ["/repos/acme/none", f"{REPO}/issues/9", f"{REPO}/pulls/2", "/repos/acme", "/nothing"]
)
async def test_what_is_not_there_is_a_404(path: str) -> None:
    async with hooked() as world:
        await world.tell(f"{REPO}/issues", {"title": "An issue is no pull", "author": "bea"})
        status, body, _ = await world.call("GET", path)
        assert (status, body["message"]) == (404, "Not Found")


async def test_lists_come_in_pages_with_links() -> None:
    async with hooked() as world:
        thread = world.sandbox.world.issue("acme/app", 1)
        for number in range(7):
            world.sandbox.world.add_comment(thread, f"{number}", "bea")
        seen, page = [], 1
        while page:
            path = f"{COMMENTS}?per_page=3&page={page}"
            _, body, headers = await world.call("GET", path)
            seen += [comment["body"] for comment in body]
            page = page + 1 if 'rel="next"' in headers.get("Link", "") else 0
        assert seen == [f"{number}" for number in range(7)]


async def test_pull_requests_are_read_alone_and_in_a_list() -> None:
    async with hooked() as world:
        _, one, _ = await world.call("GET", f"{REPO}/pulls/1")
        _, listed, _ = await world.call("GET", f"{REPO}/pulls?state=open")
        assert listed == [one]
        assert one["head"]["sha"] == "a" * 40


async def test_each_answer_counts_down_the_limit() -> None:
    async with hooked() as world:
        left = [(await world.call("GET", "/user"))[2]["X-RateLimit-Remaining"] for _ in range(2)]
        assert left == ["4999", "4998"]
        _, body, _ = await world.call("GET", "/rate_limit")
        assert body["rate"]["remaining"] == 4998


# ------------------------------------------------------------------ the control API
@pytest.mark.parametrize("headers", [{"Host": "evil.example.org"}, {"Origin": "http://127.0.0.1"}])
async def test_a_web_page_cannot_speak_to_the_control_api(headers: dict[str, str]) -> None:
    async with hooked() as world:
        status, _, _ = await world.call("POST", "/_sandbox/repos", b"{}", **headers)
        assert status == 403


@pytest.mark.parametrize(
    ("path", "data", "status", "said"),
    [
        ("/repos", b"[", 400, "JSON object"),
        ("/repos", b'{"fullname": "a/b"}', 422, "Unknown keys: fullname"),
        ("/repos", b"{}", 422, "full_name"),
        ("/faults", b'{"fault": "flood"}', 422, "one of 500"),
        ("/repos/acme/none/issues", b'{"title": "x", "author": "y"}', 404, "acme/none"),
        ("/deliveries/none/redeliver", b"", 404, "none"),
        (f"{REPO}/issues/1/explode", b'{"author": "y"}', 404, "explode"),
        ("/hooks", b'{"url": "http://127.0.0.1:9", "content_type": "xml"}', 422, "form"),
    ],
)
async def test_a_wrong_order_is_refused_in_words(
    path: str, data: bytes, status: int, said: str
) -> None:
    async with hooked() as world:
        got, body, _ = await world.call("POST", f"/_sandbox{path}", data)
        assert got == status
        assert said in body["error"]


async def test_the_sandbox_listens_on_the_loopback_only_and_frees_its_port() -> None:
    async with hooked() as world:
        url = world.sandbox.url
        assert url.startswith("http://127.0.0.1:")
        host, port = url.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
