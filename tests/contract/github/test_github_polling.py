"""Polling against the sandbox: no public address, nothing missed, nothing told twice, few calls."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fixtures.github import BOT, SECRET, TOKEN, Changed, received, settings
from upright.api import ActorKind, ConnectorNotReadyError, Trigger
from upright.kit.late import FACT
from upright.testing.context import MemoryContext
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.world import Issue, Pull, Run

REPO = "acme/app"
POLL_S = 60.0


@dataclass(slots=True)
class Bench:
    """A sandbox, and a context for one connector after the other."""

    sandbox: Sandbox
    memory: MemoryContext
    poll_s: float = POLL_S

    def comment(self, text: str, author: str = "ann") -> int:
        self.memory.pass_time(1)
        shape, _ = self.sandbox.story.comment(self.issue(), text, author)
        return int(shape["id"])

    def edit(self, number: int, text: str) -> None:
        self.memory.pass_time(1)
        self.sandbox.story.edit_comment(self.sandbox.world.comment(number), text, "ann")

    def issue(self, number: int = 1) -> Issue:
        return self.sandbox.world.issue(REPO, number)

    @asynccontextmanager
    async def polling(self) -> AsyncIterator[GitHubConnector]:
        """Have a connector poll; on leaving it is stopped."""
        keys = settings(
            api_url=self.sandbox.url, repositories=(REPO,), poll_s=self.poll_s, secret=None
        )
        connector = GitHubConnector("github", keys)
        await connector.start(self.memory)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(connector.listen())
            try:
                await self.memory.until_asleep()
                yield connector
            finally:
                task.cancel()
                await connector.stop(5.0)

    async def round(self, seconds: float = POLL_S) -> None:
        """Let time pass until the next look is over."""
        await self.memory.sleep_through(seconds)

    def calls(self) -> list[str]:
        return [call.path for call in self.sandbox.rest.calls]


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    memory = MemoryContext(
        source="github", secrets={"env:S": SECRET, "env:T": TOKEN}, hurries=False
    )
    numbers = iter(range(100_000))
    options = Options(token=TOKEN, secret=SECRET, login=BOT)
    async with running(
        options, now=memory.service_now, new_guid=lambda: f"g{next(numbers)}"
    ) as sandbox:
        sandbox.world.add_repository(REPO, "", default_branch="main", private=False)
        sandbox.story.open_issue(issue(sandbox, 1))
        yield Bench(sandbox, memory)


def issue(sandbox: Sandbox, number: int, pull: Pull | None = None) -> Issue:
    now = sandbox.world.now()
    return Issue(
        id=sandbox.world.new_id(),
        repo=REPO,
        number=number,
        title="It fails",
        body="",
        author="ann",
        created_at=now,
        updated_at=now,
        pull=pull,
    )


def a_pull(sandbox: Sandbox) -> Pull:
    return Pull(
        id=sandbox.world.new_id(),
        head="fix",
        sha="a" * 40,
        head_repo=REPO,
        base="main",
        base_sha="b" * 40,
    )


def kinds(memory: MemoryContext) -> list[str]:
    return [one.kind for one in memory.accepted]


def is_late(trigger: Trigger) -> bool:
    return FACT in trigger.context.facts


# ------------------------------------------------------------------ the proof of catching up
@pytest.mark.feature("github.poll_catch_up", "common.cursor")
@pytest.mark.timeout(90)  # some 800 calls over sockets, on a machine that may be busy
async def test_stopped_during_260_changes_it_tells_each_once_in_order_and_late() -> None:
    async with bench() as at:
        async with at.polling():
            at.comment("before")
            await at.round()
        before = len(at.memory.accepted)
        for number in range(220):
            made = at.comment(f"missed {number}")
            if number % 10 == 0:
                at.edit(made, f"missed {number}, edited")
            if number % 20 == 0:
                at.sandbox.story.delete_comment(at.sandbox.world.comment(made), "ann")
        async with at.polling():
            at.comment("afterwards")
            await at.round()
            await at.round()
        *missed, after = at.memory.accepted[before:]
        created = [one.content.text for one in missed if one.kind == "comment.created"]
        wanted = [number for number in range(220) if number % 20]
        order = [int(text.split()[1].strip(",")) for text in created]
        assert sorted(order) == wanted
        assert [one for one in order if one % 10] == [one for one in wanted if one % 10]
        assert sum(one.kind == "comment.edited" for one in missed) == 11
        assert all(is_late(one) for one in missed)
        assert (after.content.text, is_late(after)) == ("afterwards", False)


async def test_a_first_start_against_a_history_tells_nothing() -> None:
    async with bench() as at:
        for number in range(50):
            at.comment(f"long ago {number}")
        async with at.polling():
            await at.round()
        assert at.memory.emitted == []


async def test_a_cursor_that_is_lost_means_no_replay_and_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with bench() as at:
        at.comment("long ago")
        at.memory.cursors.append("{rubbish")
        async with at.polling() as connector:
            await at.round()
            assert "not told" in connector.health().gap
        assert at.memory.emitted == []
        assert [one.message for one in caplog.records].count("github.cursor_lost") == 1


async def test_what_stands_on_a_second_page_is_told_although_the_first_is_unchanged() -> None:
    async with bench() as at:
        async with at.polling():
            for number in range(101):
                at.sandbox.story.comment(at.issue(), f"at once {number}", "ann")
            await at.round()
            assert len(at.memory.accepted) == 101
            at.sandbox.world.now = lambda: at.memory.service_now() - timedelta(seconds=POLL_S)
            at.sandbox.story.comment(at.issue(), "in the same second, shown late", "ann")
            await at.round()
        assert at.memory.accepted[-1].content.text == "in the same second, shown late"
        assert len(at.memory.accepted) == 102


# ------------------------------------------------------------------ what it costs
@pytest.mark.feature("github.polling")
async def test_a_hundred_unchanged_looks_cost_no_call_that_counts() -> None:
    async with bench() as at:
        async with at.polling():
            await at.round()
            before, made = at.sandbox.rest.used, len(at.calls())
            for _ in range(100):
                await at.round()
            assert len(at.calls()) > made + 100
            assert at.sandbox.rest.used == before
        statuses = {call.status for call in at.sandbox.rest.calls[made:]}
        assert statuses == {304}


@pytest.mark.feature("github.polling")
async def test_it_looks_no_more_often_than_github_asks() -> None:
    async with bench() as at:
        at.sandbox.rest.poll_interval_s = 300
        async with at.polling():
            made = len(at.calls())
            at.memory.pass_time(299)
            for _ in range(20):
                await asyncio.sleep(0)
            assert (len(at.calls()), at.memory.slept) == (made, 0)
            await at.round(1)
            assert len(at.calls()) > made


@pytest.mark.feature("github.limits")
@pytest.mark.parametrize(
    ("fault", "pause_s"),
    [
        (RestFault.SECONDARY, 60.0),
        (RestFault.SECONDARY_RETRY_AFTER, 7.0),
        (RestFault.PRIMARY, 90.0),
    ],
)
async def test_a_limit_stops_the_looking_for_as_long_as_it_says(
    fault: RestFault, pause_s: float
) -> None:
    async with bench() as at:
        keys = settings(api_url=at.sandbox.url, repositories=(REPO,), poll_s=POLL_S)
        connector = GitHubConnector("github", keys)
        await connector.start(at.memory)
        at.sandbox.rest.faults.rest.append(RestRule(fault=fault))
        with pytest.raises(ConnectorNotReadyError) as limited:
            await connector.listen()
        assert limited.value.retry_after_s == pytest.approx(pause_s, abs=1)
        await connector.stop(5.0)


# ------------------------------------------------------------------ what it tells
@pytest.mark.parametrize("days", [1, -1])
async def test_a_clock_that_is_wrong_from_the_first_loses_nothing(days: int) -> None:
    async with bench() as at:
        at.memory.jump(days * 86_400)
        async with at.polling():
            at.comment("heard")
            await at.round()
        assert kinds(at.memory) == ["comment.created"]


@pytest.mark.feature("github.events")
async def test_a_pull_request_is_told_from_its_opening_to_its_merge_with_its_reviews() -> None:
    async with bench() as at:
        async with at.polling():
            at.sandbox.story.open_issue(issue(at.sandbox, 2, a_pull(at.sandbox)))
            await at.round()
            at.memory.pass_time(1)
            at.sandbox.reviews.submit(at.issue(2), "REQUEST_CHANGES", "No", "eve")
            at.memory.pass_time(1)
            at.sandbox.reviews.add(at.issue(2), "Why?", "eve", path="a.py", line=3)
            await at.round()
            at.sandbox.story.change_issue(at.issue(2), "merged", "ann")
            at.sandbox.story.change_issue(at.issue(1), "closed", "ann")
            await at.round()
        assert sorted(kinds(at.memory)) == sorted(
            [
                "pr.opened",
                "review.submitted",
                "review_comment.created",
                "pr.merged",
                "issue.closed",
            ]
        )
        pull = [one for one in at.memory.accepted if one.kind != "issue.closed"]
        assert {one.context.thread.rpartition("#")[2] for one in pull} == {"2"}


@pytest.mark.feature("github.events")
async def test_a_workflow_run_is_told_when_it_begins_and_when_it_fails() -> None:
    async with bench() as at:
        run = Run(
            id=77,
            repo=REPO,
            name="CI",
            sha="a" * 40,
            branch="fix",
            status="in_progress",
            conclusion="",
            started_at=at.memory.service_now(),
            completed_at=None,
            app="github-actions",
            actor="ann",
        )
        async with at.polling():
            at.sandbox.story.workflow_run(run)
            await at.round()
            now = at.memory.service_now()
            ended = replace(run, status="completed", conclusion="failure", completed_at=now)
            at.sandbox.story.workflow_run(ended)
            at.sandbox.actions.jobs[77] = [{"name": "unit", "conclusion": "failure"}]
            await at.round()
        assert kinds(at.memory) == ["ci.started", "ci.failed"]
        assert dict(at.memory.accepted[-1].context.facts)["failed"] == "unit"


@pytest.mark.feature("github.events")
async def test_checks_of_others_are_told_for_open_pull_requests_and_the_default_branch() -> None:
    async with bench() as at:
        at.sandbox.story.open_issue(issue(at.sandbox, 2, a_pull(at.sandbox)))
        async with at.polling():
            at.memory.pass_time(1)
            for number, (sha, branch, app) in enumerate(
                [
                    ("a" * 40, "fix", "some-ci"),
                    ("c" * 40, "main", "some-ci"),
                    ("d" * 40, "elsewhere", "some-ci"),
                    ("a" * 40, "fix", "github-actions"),
                ]
            ):
                at.sandbox.story.check_run(check(at, 900 + number, sha=sha, branch=branch, app=app))
            await at.round()
        told = [one for one in at.memory.accepted if one.kind == "ci.failed"]
        shas = [one.context.code.sha for one in told if one.context.code]
        assert sorted(shas) == ["a" * 40, "c" * 40]
        assert {one.actor.id for one in told} == {"app:some-ci"}


def check(at: Bench, number: int, *, sha: str, branch: str, app: str) -> Run:
    now = at.memory.service_now()
    return Run(
        id=number,
        repo=REPO,
        name="unit",
        sha=sha,
        branch=branch,
        status="completed",
        conclusion="failure",
        started_at=now,
        completed_at=now,
        app=app,
        actor="ann",
    )


@pytest.mark.feature("github.dedupe")
async def test_what_is_polled_has_the_keys_of_its_webhook() -> None:
    async with bench() as at:
        async with at.polling():
            at.comment("Please look")
            at.sandbox.story.open_issue(issue(at.sandbox, 2, a_pull(at.sandbox)))
            at.sandbox.reviews.submit(at.issue(2), "APPROVE", "", "eve")
            await at.round()
        for polled in at.memory.accepted:
            event = {
                "comment.created": "issue_comment",
                "pr.opened": "pull_request",
                "review.submitted": "pull_request_review",
            }[polled.kind]
            (told,) = await received(event, json.loads(polled.raw))
            assert set(polled.dedupe) <= set(told.dedupe)
        assert len(at.memory.accepted) == 3


async def test_our_own_comments_are_ours() -> None:
    async with bench() as at:
        async with at.polling():
            at.comment("Done", BOT)
            await at.round()
        assert [one.actor.kind for one in at.memory.accepted] == [ActorKind.SELF]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (Changed(poll_s=1.0), "poll_s must be 0"),
        (Changed(poll_s=60.0, repositories=()), "repositories must name"),
        (Changed(secret=None), "secret is missing"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed: Changed, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**changed)


async def test_without_a_secret_no_webhook_is_taken() -> None:
    async with bench() as at:
        keys = settings(api_url=at.sandbox.url, repositories=(REPO,), poll_s=POLL_S, secret=None)
        assert not GitHubConnector("github", keys).capabilities().receives
        assert timedelta(seconds=keys.poll_s) == timedelta(minutes=1)
