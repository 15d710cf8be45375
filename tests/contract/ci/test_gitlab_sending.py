"""Notes on merge requests, over real sockets: seen once, and they command nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fixtures.connector import MemoryContext
from fixtures.gitlab import BOT, PROJECT, SECRETS, sandbox, settings
from upright.api import (
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
    UnknownSendError,
)
from upright_ci.gitlab.connector import GitLabConnector
from upright_ci.gitlab.sandbox.rest import Fault, Rule
from upright_ci.gitlab.sandbox.server import Sandbox

HERE = (("project", PROJECT), ("on", "merge_requests"), ("iid", "1"))


def effect(text: str = "Done", *, tries: int = 0, to: tuple[tuple[str, str], ...] = HERE) -> Effect:
    where = Destination(source="gl", kind="note", address=to)
    return Effect(id="ob_1", destination=where, text=text, idempotency_key="k", tries=tries)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[GitLabConnector, Sandbox]]:
    context = MemoryContext(source="gl", secrets=dict(SECRETS))
    async with sandbox(context) as gitlab:
        gitlab.story.request(gitlab.story.project(PROJECT), "Change", "fix", "a" * 40)
        connector = GitLabConnector("gl", settings(api_url=gitlab.url))
        await connector.start(context)
        try:
            yield connector, gitlab
        finally:
            await connector.stop(1)


def ours(gitlab: Sandbox) -> list[str]:
    return [one.body for one in gitlab.story.world.notes.values() if one.author == BOT]


@pytest.mark.parametrize(
    "line",
    ["/merge", "  /merge", "/merge now", "/MERGE", "> /close", "text\r/merge", "```\n/merge"],
)
async def test_no_line_of_a_note_is_a_command(line: str) -> None:
    async with connected() as (connector, gitlab):
        await connector.send(effect(f"I would say:\n{line}\nand no more"))
        assert gitlab.rest.commanded == []
        assert r"\/" in ours(gitlab)[0]


async def test_a_path_stays_as_it_is() -> None:
    async with connected() as (connector, gitlab):
        await connector.send(effect("/usr/bin/python3 failed"))
        assert ours(gitlab)[0].startswith("/usr/bin/python3 failed")


@pytest.mark.clause("B15.2")
async def test_an_error_after_the_note_was_made_finds_it() -> None:
    async with connected() as (connector, gitlab):
        gitlab.rest.faults.append(Rule(fault=Fault.ERROR_502, done=True))
        receipt = await connector.send(effect())
        assert (receipt.found, len(ours(gitlab))) == (True, 1)


@pytest.mark.clause("B15.2")
async def test_an_error_that_made_nothing_is_unknown_and_the_next_try_looks_first() -> None:
    async with connected() as (connector, gitlab):
        gitlab.rest.faults.append(Rule(fault=Fault.ERROR_502))
        with pytest.raises(UnknownSendError):
            await connector.send(effect())
        await connector.send(effect(tries=1))
        assert len(ours(gitlab)) == 1


async def test_somebody_elses_copy_of_a_mark_is_not_ours() -> None:
    async with connected() as (connector, gitlab):
        await connector.send(effect())
        body, request = ours(gitlab)[0], gitlab.story.world.requests[PROJECT, 1]
        gitlab.story.world.notes.clear()
        gitlab.story.note(request, body, "eve")
        receipt = await connector.send(effect(tries=1))
        assert not receipt.found
        assert len(ours(gitlab)) == 1


@pytest.mark.clause("B15.3")
@pytest.mark.parametrize(
    "to",
    [
        (("project", PROJECT), ("on", "merge_requests"), ("iid", "9")),
        (("project", "acme/../other"), ("on", "merge_requests"), ("iid", "1")),
        (("project", PROJECT), ("on", "commits"), ("iid", "1")),
        (("project", PROJECT), ("on", "merge_requests"), ("iid", "1/notes?x=")),
        (),
    ],
)
async def test_a_destination_that_is_not_there_is_final(to: tuple[tuple[str, str], ...]) -> None:
    async with connected() as (connector, gitlab):
        with pytest.raises(PermanentSendError):
            await connector.send(effect(to=to))
        assert ours(gitlab) == []


async def test_nobody_at_home_is_tried_again() -> None:
    context = MemoryContext(source="gl", secrets=dict(SECRETS))
    connector = GitLabConnector("gl", settings(api_url="http://127.0.0.1:9"))
    await connector.start(context)
    with pytest.raises(RetryableSendError):
        await connector.send(effect())
    await connector.stop(1)


async def test_a_text_that_is_too_long_is_refused_whole() -> None:
    async with connected() as (connector, gitlab):
        with pytest.raises(PermanentSendError, match="more than a note holds"):
            await connector.send(effect("x" * 1_000_001))
        assert ours(gitlab) == []


@pytest.mark.feature("ci.log_tail")
async def test_a_log_is_told_by_its_end_and_masked() -> None:
    token = "glpat-" + "a1" * 10
    async with connected() as (connector, gitlab):
        story = gitlab.story
        pipeline, _ = story.begin(story.world.projects[PROJECT], "fix", "b" * 40)
        log = "noise\n" * 40_000 + f"error: the token {token} is refused\n"
        request = story.end(pipeline, "failed", trace=log)
        (trigger,) = await connector.receive(request)
    error = dict(trigger.context.facts)["error"]
    assert error == "error: the token [masked] is refused"
    assert token not in repr(trigger.content) + repr(trigger.context)


async def test_a_silent_log_holds_no_webhook_up(caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as (connector, gitlab):
        story = gitlab.story
        pipeline, _ = story.begin(story.world.projects[PROJECT], "fix", "b" * 40)
        request = story.end(pipeline, "failed", trace="error")
        gitlab.rest.faults += [Rule(fault=Fault.DROP, method="GET")] * 5  # aiohttp asks again
        (trigger,) = await connector.receive(request)
        assert dict(trigger.context.facts)["error"] == "script failure"
        assert "gitlab.no_log" in caplog.text


async def test_a_live_check_finds_that_the_token_is_somebody_elses() -> None:
    async with connected() as (connector, gitlab):
        assert (await connector.validate()).ok
        gitlab.story.world.login = "ann"
        probe = await connector.validate()
        assert (probe.ok, "ann" in probe.summary) == (False, True)


async def test_a_hook_that_is_answered_2xx_stays_on() -> None:
    """The sandbox switches a hook off as GitLab does: for a 4xx, at once."""
    async with connected() as (_, gitlab):
        gitlab.story.postman.url = f"{gitlab.url}/nowhere"
        assert await gitlab.story.tell() == [404]
        assert gitlab.story.postman.disabled
