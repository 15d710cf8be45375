"""Reviews against the sandbox: the talk beside a line, and answers where they belong or instead."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import aiohttp
import pytest

from fixtures.github import BOT, SECRET, TOKEN, context, received, started
from upright.api import Destination, Effect, PermanentSendError, Receipt, Trigger, UnknownSendError
from upright.testing.context import MemoryContext
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.postman import Hook
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.world import Issue, Pull

REPO = "acme/app"


@dataclass(slots=True)
class Bench:
    """A pull request (number 1) that changes lines 1 to 99 of a.py."""

    sandbox: Sandbox
    memory: MemoryContext
    connector: GitHubConnector

    def pull(self) -> Issue:
        return self.sandbox.world.issue(REPO, 1)

    async def comment(
        self, body: str, line: int, *, path: str = "a.py", root: int | None = None
    ) -> Trigger:
        """Comment on a line; return the trigger of its webhook."""
        self.memory.pass_time(1)
        made = self.sandbox.reviews.add(self.pull(), body, "eve", path=path, line=line, root=root)
        delivery = self.sandbox.story.postman.delivery(made[1][0])
        (trigger,) = await received("pull_request_review_comment", json.loads(delivery.body))
        return trigger

    def replies(self) -> list[tuple[int | None, str]]:
        """Return what we said on lines: below which comment, and what."""
        found = self.sandbox.reviews.comments.values()
        return [(one.root, one.body.partition("\n\n<!--")[0]) for one in found if one.author == BOT]

    def reviews(self) -> list[tuple[str, str]]:
        found = self.sandbox.reviews.reviews.values()
        return [(one.state, one.body.partition("\n\n<!--")[0]) for one in found]

    def comments(self) -> list[str]:
        return [one.body for one in self.sandbox.world.comments_of(REPO, 1)]

    async def send(self, to: Destination | None, *, tries: int = 0) -> Receipt:
        assert to is not None
        effect = Effect(
            id="ob_1", destination=to, text="Done.", idempotency_key="key--1", tries=tries
        )
        return await self.connector.send(effect)

    def fault(self, fault: RestFault, *, done: bool = False, method: str = "POST") -> None:
        rule = RestRule(fault=fault, done=done, method=method)
        self.sandbox.rest.faults.rest.append(rule)


@asynccontextmanager
async def bench(author: str = "ann") -> AsyncIterator[Bench]:
    memory, numbers = context(), iter(range(10_000))
    options = Options(token=TOKEN, secret=SECRET, login=BOT)
    async with running(options, now=memory.now, new_guid=lambda: f"g{next(numbers)}") as sandbox:
        world = sandbox.world
        world.add_repository(REPO, "", default_branch="main", private=False)
        pull = Pull(
            id=world.new_id(),
            head="fix",
            sha="a" * 40,
            head_repo=REPO,
            base="main",
            base_sha="b" * 40,
        )
        sandbox.story.open_issue(
            Issue(
                id=world.new_id(),
                repo=REPO,
                number=1,
                title="Fix it",
                body="",
                author=author,
                created_at=world.now(),
                updated_at=world.now(),
                pull=pull,
            )
        )
        sandbox.story.postman.hooks[1] = Hook(id=1, url="http://127.0.0.1:9/", secret=SECRET)
        sandbox.reviews.diffs[REPO, 1] = {"a.py": range(1, 100)}
        async with started(memory, api_url=sandbox.url) as connector:
            yield Bench(sandbox, memory, connector)


def number(trigger: Trigger) -> int:
    return int(dict(trigger.context.facts)["native_id"].rpartition(":")[2])


# ------------------------------------------------------------------ the talk beside a line
@pytest.mark.feature("github.review_context")
async def test_the_neighbours_of_a_comment_on_a_line_are_its_thread_and_what_is_near() -> None:
    async with bench() as at:
        root = await at.comment("root", 50)
        await at.comment("near", 60)
        await at.comment("far", 90)
        await at.comment("another file", 50, path="b.py")
        reply = await at.comment("reply", 50, root=number(root))
        await at.comment("later", 45)
        around = await at.connector.neighbours(reply, 5, 5)
        assert [one.text for one in around.before] == ["root", "near"]
        assert [one.text for one in around.after] == ["later"]
        nearest = await at.connector.neighbours(reply, 1, 0)
        assert ([one.text for one in nearest.before], nearest.after) == (["near"], ())


@pytest.mark.feature("github.review_context")
async def test_a_comment_tells_its_lines_and_a_line_that_is_gone_is_still_found() -> None:
    async with bench() as at:
        await at.comment("before", 52)
        made = await at.comment("Why?", 50)
        facts = dict(made.context.facts)
        assert (facts["path"], facts["line"], facts["side"]) == ("a.py", "50", "RIGHT")
        assert facts["diff_hunk"].startswith("@@")
        comments = at.sandbox.reviews.comments
        comments[number(made)] = replace(comments[number(made)], outdated=True)
        around = await at.connector.neighbours(made, 5, 5)
        assert [one.text for one in around.before] == ["before"]


# ------------------------------------------------------------------ answers
@pytest.mark.feature("github.review_reply")
async def test_an_answer_goes_below_the_first_comment_of_its_thread() -> None:
    async with bench() as at:
        root = await at.comment("root", 50)
        reply = await at.comment("reply", 50, root=number(root))
        receipt = await at.send(reply.context.reply_to)
        assert at.replies() == [(number(root), "Done.")]
        assert receipt.url.endswith(f"#discussion_r{receipt.provider_id}")
        assert at.comments() == []


@pytest.mark.feature("github.review_reply")
async def test_a_line_that_is_gone_is_answered_by_a_comment_that_says_so() -> None:
    async with bench() as at:
        made = await at.comment("Why?", 50)
        comments = at.sandbox.reviews.comments
        comments[number(made)] = replace(comments[number(made)], outdated=True)
        await at.send(made.context.reply_to)
        (said,) = at.comments()
        assert said.startswith("_In answer to a comment on a line")
        again = await at.send(made.context.reply_to, tries=1)
        assert (again.found, len(at.comments()), at.replies()) == (True, 1, [])


async def test_a_comment_that_was_deleted_is_answered_by_a_comment() -> None:
    async with bench() as at:
        made = await at.comment("Why?", 50)
        del at.sandbox.reviews.comments[number(made)]
        await at.send(made.context.reply_to)
        assert len(at.comments()) == 1


@pytest.mark.feature("github.review_reply")
@pytest.mark.parametrize("fault", [RestFault.DROP, RestFault.GARBLED, RestFault.ERROR_502])
async def test_an_answer_whose_receipt_is_lost_is_found_where_it_was_said(fault: RestFault) -> None:
    async with bench() as at:
        made = await at.comment("Why?", 50)
        at.fault(fault, done=True)
        assert (await at.send(made.context.reply_to)).provider_id
        assert len(at.replies()) == 1


async def test_an_answer_that_may_have_been_lost_is_not_said_elsewhere_by_a_guess() -> None:
    async with bench() as at:
        made = await at.comment("Why?", 50)
        at.fault(RestFault.DROP)
        with pytest.raises(UnknownSendError):
            await at.send(made.context.reply_to)
        assert (at.replies(), at.comments()) == ([], [])


def review(verdict: str = "") -> Destination:
    address = (("repo", REPO), ("number", "1"), *((("verdict", verdict),) if verdict else ()))
    return Destination(source="github", kind="review", address=address)


@pytest.mark.feature("github.review_reply")
@pytest.mark.parametrize(
    ("author", "verdict", "state"),
    [
        ("ann", "", "COMMENTED"),
        ("ann", "APPROVE", "APPROVED"),
        ("ann", "REQUEST_CHANGES", "CHANGES_REQUESTED"),
        (BOT, "APPROVE", "COMMENTED"),  # nobody approves their own
    ],
)
async def test_a_review_is_submitted_once_with_its_verdict_or_without(
    author: str, verdict: str, state: str
) -> None:
    async with bench(author) as at:
        await at.send(review(verdict))
        assert at.reviews() == [(state, "Done.")]
        assert (await at.send(review(verdict), tries=1)).found
        assert len(at.reviews()) == 1


@pytest.mark.parametrize(
    "address",
    [
        (("repo", REPO), ("number", "1")),
        (("repo", REPO), ("number", "1"), ("comment", "1/../2")),
    ],
)
async def test_an_answer_below_no_comment_is_final_and_calls_nobody(
    address: tuple[tuple[str, str], ...],
) -> None:
    async with bench() as at:
        to = Destination(source="github", kind="review_reply", address=address)
        with pytest.raises(PermanentSendError):
            await at.send(to)
        with pytest.raises(PermanentSendError):
            await at.send(review("MERGE"))
        assert at.sandbox.rest.calls == ()


# ------------------------------------------------------------------ the sandbox
@pytest.mark.feature("github.sandbox")
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("reviews", {"body": "x", "event": "MERGE"}, 422),
        ("reviews", {"body": " ", "event": "COMMENT"}, 422),
        ("reviews", {"body": "x", "event": "COMMENT", "comments": [{"path": "b.py"}]}, 422),
        ("comments/1/replies", {"body": "x"}, 404),
        ("reviews", {"event": "APPROVE"}, 200),
    ],
)
async def test_the_sandbox_refuses_what_github_refuses(
    path: str, body: dict[str, object], status: int
) -> None:
    async with bench() as at, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "test"}
        url = f"{at.sandbox.url}/repos/{REPO}/pulls/1/{path}"
        async with session.post(url, json=body, headers=headers) as answer:
            assert answer.status == status


async def test_the_sandbox_takes_no_reply_to_a_reply() -> None:
    async with bench() as at, aiohttp.ClientSession() as session:
        root = await at.comment("root", 50)
        reply = await at.comment("reply", 50, root=number(root))
        headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "test"}
        url = f"{at.sandbox.url}/repos/{REPO}/pulls/1/comments/{number(reply)}/replies"
        async with session.post(url, json={"body": "x"}, headers=headers) as answer:
            assert answer.status == 422
