"""Recovery: what no hub took is delivered once more, and listed; it comes once, and late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from aiohttp import web

from fixtures.eventually import eventually
from fixtures.github import BOT, SECRET, TOKEN, context, started
from upright.api import ConnectorNotReadyError, InboundRequest, Trigger
from upright.kit.late import FACT
from upright.testing.context import MemoryContext
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.postman import Hook
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.world import Issue

REPO = "acme/app"


@dataclass(slots=True)
class Door:
    """A hub's door that can be shut: then a webhook is answered by 503."""

    memory: MemoryContext
    connector: GitHubConnector | None = None
    came: list[str] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        if self.connector is None:
            return web.Response(status=503)
        headers = {name.lower(): value for name, value in request.headers.items()}
        inbound = InboundRequest(headers=headers, body=await request.read())
        self.memory.take(await self.connector.receive(inbound))
        self.came.append(headers["x-github-delivery"])
        return web.Response(status=202)


@dataclass(slots=True)
class Bench:
    sandbox: Sandbox
    memory: MemoryContext
    door: Door
    connector: GitHubConnector

    def comment(self, text: str) -> None:
        self.memory.pass_time(1)
        self.sandbox.story.comment(self.sandbox.world.issue(REPO, 1), text, "ann")

    async def missed(self, count: int) -> str:
        """Let so many webhooks fail; return since when."""
        since = self.memory.now().isoformat()
        for number in range(count):
            self.comment(f"missed {number}")
        assert await self.sandbox.story.postman.settle(10.0)
        return since

    async def recover(self, since: str) -> list[Trigger]:
        """Open the door and list; return what the listing alone brought anew."""
        self.door.connector = self.connector
        until = self.memory.now() + timedelta(seconds=1)
        listed = [one async for one in self.connector.backfill(since, until)]
        assert await self.sandbox.story.postman.settle(10.0)
        return listed

    def posts(self) -> int:
        return sum(call.method == "POST" for call in self.sandbox.rest.calls)


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    memory, numbers = context(), iter(range(10_000))
    door, app = Door(memory), web.Application()
    app.add_routes([web.post("/hooks/{name}", door.receive)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks/github"
    options = Options(token=TOKEN, secret=SECRET, login=BOT)
    try:
        async with running(
            options, now=memory.now, new_guid=lambda: f"g{next(numbers)}"
        ) as sandbox:
            _set_up(sandbox, url)
            async with started(memory, api_url=sandbox.url, repositories=(REPO,)) as connector:
                yield Bench(sandbox, memory, door, connector)
    finally:
        await runner.cleanup()


def _set_up(sandbox: Sandbox, url: str) -> None:
    world, hour = sandbox.world, timedelta(hours=1)
    world.add_repository(REPO, "", default_branch="main", private=False)
    issue = Issue(
        id=world.new_id(),
        repo=REPO,
        number=1,
        title="It fails",
        body="",
        author="ann",
        created_at=world.now() - hour,
        updated_at=world.now() - hour,
    )
    sandbox.story.open_issue(issue)
    hooks = sandbox.story.postman.hooks
    hooks[1] = Hook(id=1, url=url, secret=SECRET)
    hooks[2] = Hook(id=2, url="http://127.0.0.1:9/elsewhere", secret="another's")


@pytest.mark.feature("github.gap", "common.backfill")
async def test_what_no_hub_took_comes_once_by_redelivery_and_listing_and_is_late() -> None:
    async with bench() as at:
        since = await at.missed(20)
        listed = await at.recover(since)
        assert len(at.door.came) == len(listed) == 20
        taken = at.memory.take(listed)
        assert taken == ()
        texts = [one.content.text for one in at.memory.accepted]
        assert sorted(texts) == sorted(f"missed {n}" for n in range(20))
        assert all(FACT in one.context.facts for one in at.memory.accepted)


@pytest.mark.feature("github.dedupe")
async def test_a_hook_of_the_repository_and_one_of_an_app_tell_one_thing() -> None:
    async with bench() as at:
        hooks = at.sandbox.story.postman.hooks
        hooks[2] = replace(hooks[2], url=hooks[1].url, secret=SECRET)
        at.door.connector = at.connector
        at.comment("once")
        await eventually(lambda: len(at.door.came) == 2)
        assert len(set(at.door.came)) == 2
        assert [one.content.text for one in at.memory.accepted] == ["once"]


async def test_what_fails_once_more_is_not_asked_for_for_ever() -> None:
    async with bench() as at:
        since = await at.missed(1)
        for _ in range(3):
            listed = at.connector.backfill(since, at.memory.now() + timedelta(seconds=1))
            assert len([one async for one in listed]) == 1
            assert await at.sandbox.story.postman.settle(10.0)
        assert at.posts() == 1


async def test_what_was_delivered_is_not_asked_for_again() -> None:
    async with bench() as at:
        since = await at.missed(3)
        await at.recover(since)
        at.comment("taken at once")
        await eventually(lambda: len(at.door.came) == 4)
        assert await at.sandbox.story.postman.settle(10.0)
        asked = at.posts()
        await at.recover(since)
        assert at.posts() == asked == 3
        assert FACT not in at.memory.accepted[-1].context.facts


async def test_more_deliveries_than_a_page_are_read_by_their_cursor() -> None:
    async with bench() as at:
        since = await at.missed(130)
        await at.recover(since)
        assert len(at.door.came) == 130


async def test_what_is_older_than_the_cursor_is_not_asked_for() -> None:
    async with bench() as at:
        await at.missed(2)
        at.memory.pass_time(3_600)
        since = await at.missed(1)
        await at.recover(since)
        assert len(at.door.came) == 1


@pytest.mark.parametrize("fault", [None, RestFault.ERROR_502, RestFault.GARBLED])
async def test_where_hooks_cannot_be_read_the_listing_does_it_alone(
    fault: RestFault | None,
) -> None:
    async with bench() as at:
        since = await at.missed(2)
        at.sandbox.hooks.forbidden = fault is None
        if fault is not None:
            at.sandbox.rest.faults.rest.append(RestRule(fault=fault, method="GET"))
        listed = await at.recover(since)
        assert [one.content.text for one in listed] == ["missed 0", "missed 1"]
        assert at.door.came == []


@pytest.mark.feature("github.limits")
async def test_a_limit_among_the_redeliveries_ends_the_round_for_as_long_as_it_says() -> None:
    async with bench() as at:
        since = await at.missed(3)
        rule = RestRule(fault=RestFault.SECONDARY_RETRY_AFTER, method="POST")
        at.sandbox.rest.faults.rest.append(rule)
        with pytest.raises(ConnectorNotReadyError) as limited:
            await at.recover(since)
        assert limited.value.retry_after_s == 7.0
        assert len(await at.recover(since)) == 3
        assert len(at.door.came) == 3


async def test_a_redelivery_that_is_refused_leaves_the_rest_to_the_listing() -> None:
    async with bench() as at:
        since = await at.missed(3)
        at.sandbox.rest.faults.rest.append(RestRule(fault=RestFault.ERROR_500, method="POST"))
        assert len(await at.recover(since)) == 3
        assert at.posts() == 1
