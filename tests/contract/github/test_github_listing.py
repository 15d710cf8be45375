"""Listing against the sandbox: what no webhook brought is told as its webhook tells it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fixtures.connector import START, MemoryContext
from fixtures.github import BOT, SECRET, TOKEN, context, received, started
from upright.api import ActorKind, ConnectorAuthFailedError, ConnectorNotReadyError, Trigger
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.world import Issue

pytestmark = pytest.mark.clause("B2.3")
REPO = "acme/app"
LIB = "acme/lib"
SINCE = START.isoformat()


@dataclass(frozen=True, slots=True)
class Bench:
    """A started connector, the sandbox it speaks to, and the clock of both."""

    connector: GitHubConnector
    sandbox: Sandbox
    memory: MemoryContext

    def comment(self, body: str, author: str = "ann", *, repo: str = REPO) -> int:
        """Write a comment a minute later; return its id."""
        self.memory.pass_time(60)
        shape, _ = self.sandbox.story.comment(self.sandbox.world.issue(repo, 1), body, author)
        return int(shape["id"])

    async def listed(self, since: str | None = SINCE) -> list[Trigger]:
        until = self.memory.now() + timedelta(seconds=1)
        return [one async for one in self.connector.backfill(since, until)]


@asynccontextmanager
async def bench(*repositories: str, token: str = TOKEN) -> AsyncIterator[Bench]:
    memory, numbers = context(), iter(range(10_000))
    options = Options(token=token, secret=SECRET, login=BOT)
    async with running(options, now=memory.now, new_guid=lambda: f"g{next(numbers)}") as sandbox:
        world = sandbox.world
        world.add_repository(REPO, "", default_branch="main", private=False)
        made = Issue(
            id=world.new_id(),
            repo=REPO,
            number=1,
            title="It fails",
            body="",
            author="ann",
            created_at=world.now() - timedelta(hours=1),
            updated_at=world.now() - timedelta(hours=1),
        )
        sandbox.story.open_issue(made)
        async with started(memory, api_url=sandbox.url, repositories=repositories) as connector:
            yield Bench(connector, sandbox, memory)


@pytest.mark.case("AI/66")
async def test_a_comment_is_told_with_the_keys_of_its_webhook() -> None:
    async with bench(REPO) as at:
        at.comment("Please look")
        (listed,) = await at.listed()
        payload = json.loads(listed.raw)
        (told,) = await received("issue_comment", payload)
        assert listed.dedupe[0] in told.dedupe
        assert replace(listed, dedupe=(), raw=b"") == replace(told, dedupe=(), raw=b"")
        assert (listed.kind, listed.content.text) == ("comment.created", "Please look")


async def test_a_changed_comment_is_told_as_made_and_as_edited_with_what_it_edits() -> None:
    async with bench(REPO) as at:
        number = at.comment("Please lok")
        at.memory.pass_time(60)
        at.sandbox.story.edit_comment(at.sandbox.world.comment(number), "Please look", "ann")
        made, edited = await at.listed()
        assert (made.kind, edited.kind) == ("comment.created", "comment.edited")
        assert edited.context.edit_of == dict(made.context.facts)["native_id"] == str(number)


async def test_what_changed_last_comes_last_and_what_is_older_than_the_cursor_is_left_out() -> None:
    async with bench(REPO) as at:
        old = at.comment("old")
        at.memory.pass_time(3600)
        since = at.memory.now().isoformat()
        new = [at.comment(f"new {n}") for n in range(3)]
        listed = await at.listed(since)
        natives = [int(dict(one.context.facts)["native_id"]) for one in listed]
        assert natives == new
        assert old not in natives


async def test_every_page_is_read_and_each_thread_is_asked_for_once() -> None:
    async with bench(REPO) as at:
        made = [at.comment(f"comment {n}") for n in range(101)]
        assert len(await at.listed()) == len(made)
        paths = [call.path.partition("?")[0] for call in at.sandbox.rest.calls]
        assert paths.count(f"/repos/{REPO}/issues/comments") == 2
        assert paths.count(f"/repos/{REPO}/issues/1") == 1


@pytest.mark.clause("B1.5")
async def test_our_own_comments_are_known_as_ours() -> None:
    async with bench(REPO) as at:
        at.comment("Done.", BOT)
        (listed,) = await at.listed()
        assert listed.actor.kind is ActorKind.SELF


async def test_what_several_repositories_missed_comes_in_one_order_the_oldest_first() -> None:
    """A batch that is stored moves the cursor: what is older must have come before."""
    async with bench(REPO, LIB) as at:
        issue = at.sandbox.world.issue(REPO, 1)
        at.sandbox.world.add_repository(LIB, "", default_branch="main", private=False)
        at.sandbox.story.open_issue(replace(issue, id=at.sandbox.world.new_id(), repo=LIB))
        for number in range(4):
            at.comment(f"word {number}", repo=(REPO, LIB)[number % 2])
        listed = await at.listed()
        assert [one.content.text for one in listed] == [f"word {n}" for n in range(4)]


async def test_at_the_very_first_nothing_was_missed() -> None:
    async with bench(REPO) as at:
        at.comment("before we came")
        assert await at.listed(None) == []
        assert at.sandbox.rest.calls == ()


async def test_it_lists_only_when_it_knows_the_repositories() -> None:
    async with bench() as at:
        assert not at.connector.capabilities().lists
    async with bench(REPO) as at:
        assert at.connector.capabilities().lists


async def test_a_limit_says_how_long_and_a_refused_token_says_so() -> None:
    async with bench(REPO) as at:
        rule = RestRule(fault=RestFault.SECONDARY_RETRY_AFTER, done=False, method="GET", count=1)
        at.sandbox.rest.faults.rest.append(rule)
        with pytest.raises(ConnectorNotReadyError) as limited:
            await at.listed()
        assert limited.value.retry_after_s == 7.0
    async with bench(REPO, token="another") as at:
        with pytest.raises(ConnectorAuthFailedError):
            await at.listed()
