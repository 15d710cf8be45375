"""The connector against the sandbox, over real sockets: a comment becomes visible once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from fixtures.connector import MemoryContext
from fixtures.github import BOT, SECRET, TOKEN, context, started
from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
    UnknownSendError,
)
from upright_github.comments import MAX_BODY_CHARS
from upright_github.connector import GitHubConnector
from upright_github.sandbox.faults import RestFault, RestRule
from upright_github.sandbox.server import Options, Sandbox, running
from upright_github.sandbox.world import Issue

REPO = "acme/app"


@dataclass(frozen=True, slots=True)
class Bench:
    """A started connector, the sandbox it speaks to, and the clock of both."""

    connector: GitHubConnector
    sandbox: Sandbox
    memory: MemoryContext

    def bodies(self, number: int = 1) -> list[str]:
        return [one.body for one in self.sandbox.world.comments_of(REPO, number)]

    def calls(self, method: str) -> int:
        return sum(call.method == method for call in self.sandbox.rest.calls)

    def fault(
        self, fault: RestFault, *, done: bool = False, method: str = "POST", count: int = 1
    ) -> None:
        rule = RestRule(fault=fault, done=done, method=method, count=count)
        self.sandbox.rest.faults.rest.append(rule)


def issue(sandbox: Sandbox) -> Issue:
    world = sandbox.world
    return Issue(
        id=world.new_id(),
        repo=REPO,
        number=world.next_number(REPO),
        title="It fails",
        body="",
        author="ann",
        created_at=world.now(),
        updated_at=world.now(),
    )


@asynccontextmanager
async def bench(
    *, token: str = TOKEN, login: str = BOT, timeout_s: float = 5
) -> AsyncIterator[Bench]:
    memory, numbers = context(), iter(range(10_000))
    options = Options(token=token, secret=SECRET, login=login)
    async with running(options, now=memory.now, new_guid=lambda: f"g{next(numbers)}") as sandbox:
        sandbox.world.add_repository(REPO, "", default_branch="main", private=False)
        sandbox.story.open_issue(issue(sandbox))
        async with started(memory, api_url=sandbox.url, timeout_s=timeout_s) as connector:
            yield Bench(connector, sandbox, memory)


def effect(text: str = "Done.", *, tries: int = 0, number: str = "1", repo: str = REPO) -> Effect:
    address = (("repo", repo), ("number", number))
    to = Destination(source="github", kind="comment", address=address)
    return Effect(id="ob_1", destination=to, text=text, idempotency_key="key--1", tries=tries)


async def test_a_first_try_posts_once_and_looks_at_nothing() -> None:
    async with bench() as at:
        receipt = await at.connector.send(effect("Grüße 😊"))
        (comment,) = at.sandbox.world.comments_of(REPO, 1)
        assert comment.body.startswith("Grüße 😊\n\n<!-- upright:")
        assert receipt.provider_id == str(comment.id)
        assert receipt.url == f"{at.sandbox.url}/{REPO}/issues/1#issuecomment-{comment.id}"
        assert not receipt.found
        assert (at.calls("POST"), at.calls("GET")) == (1, 0)


@pytest.mark.clause("B15.2")
@pytest.mark.feature("github.comment")
async def test_a_second_try_finds_the_first_and_sends_nothing() -> None:
    async with bench() as at:
        first = await at.connector.send(effect())
        second = await at.connector.send(effect(tries=1))
        assert second == replace(first, found=True)
        assert at.calls("POST") == 1


async def test_a_second_try_sends_when_the_first_left_nothing() -> None:
    async with bench() as at:
        receipt = await at.connector.send(effect(tries=1))
        assert not receipt.found
        assert len(at.bodies()) == 1


async def test_an_earlier_try_is_found_on_a_later_page() -> None:
    async with bench() as at:
        thread = at.sandbox.world.issue(REPO, 1)
        for number in range(150):
            at.sandbox.world.add_comment(thread, f"Talk {number}", "ann")
        await at.connector.send(effect())
        assert (await at.connector.send(effect(tries=1))).found
        assert at.calls("GET") == 2
        assert at.calls("POST") == 1


async def test_a_mark_that_somebody_copied_is_not_ours() -> None:
    async with bench() as at:
        await at.connector.send(effect())
        (comment,) = at.sandbox.world.comments_of(REPO, 1)
        at.sandbox.world.comments[comment.id] = replace(comment, author="eve")
        assert not (await at.connector.send(effect(tries=1))).found


@pytest.mark.parametrize("fault", [RestFault.DROP, RestFault.HANG, RestFault.GARBLED])
@pytest.mark.feature("github.comment")
async def test_a_lost_answer_is_looked_for_and_found(fault: RestFault) -> None:
    async with bench(timeout_s=0.5) as at:
        at.fault(fault, done=True)
        receipt = await at.connector.send(effect())
        (comment,) = at.sandbox.world.comments_of(REPO, 1)
        assert receipt.provider_id == str(comment.id)
        assert at.calls("POST") == 1


@pytest.mark.parametrize("fault", [RestFault.DROP, RestFault.HANG])
@pytest.mark.feature("github.comment")
async def test_a_lost_answer_that_left_nothing_is_unknown_and_not_sent_again(
    fault: RestFault,
) -> None:
    async with bench(timeout_s=0.5) as at:
        at.fault(fault)
        with pytest.raises(UnknownSendError):
            await at.connector.send(effect())
        assert (at.bodies(), at.calls("POST")) == ([], 1)


async def test_a_lost_answer_and_a_failed_look_are_unknown_and_the_next_try_finds_it() -> None:
    async with bench() as at:
        at.fault(RestFault.DROP, done=True)
        at.fault(RestFault.ERROR_502, method="GET")
        with pytest.raises(UnknownSendError, match="looking failed"):
            await at.connector.send(effect())
        assert (await at.connector.send(effect(tries=1))).found
        assert len(at.bodies()) == 1


async def test_a_server_error_that_left_nothing_may_be_tried_again() -> None:
    async with bench() as at:
        at.fault(RestFault.ERROR_502)
        with pytest.raises(RetryableSendError):
            await at.connector.send(effect())
        assert at.bodies() == []


async def test_a_server_error_after_the_deed_is_a_success() -> None:
    async with bench() as at:
        at.fault(RestFault.ERROR_500, done=True)
        receipt = await at.connector.send(effect())
        (comment,) = at.sandbox.world.comments_of(REPO, 1)
        assert receipt.provider_id == str(comment.id)


async def test_when_looking_first_fails_nothing_is_sent() -> None:
    async with bench() as at:
        for fault in (RestFault.ERROR_503, RestFault.DROP):
            at.fault(fault, method="GET", count=2 if fault is RestFault.DROP else 1)
            with pytest.raises(RetryableSendError):
                await at.connector.send(effect(tries=1))
        assert at.calls("POST") == 0


async def test_no_connection_means_that_nothing_left() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with started(api_url=url) as connector:
            with pytest.raises(RetryableSendError, match="No connection"):
                await connector.send(effect())
            with pytest.raises(ConnectorNotReadyError, match="No connection"):
                await connector.validate()


@pytest.mark.clause("B15.4")
@pytest.mark.parametrize(
    ("fault", "pause_s"),
    [(RestFault.SECONDARY, 60), (RestFault.SECONDARY_RETRY_AFTER, 7), (RestFault.PRIMARY, 90)],
)
@pytest.mark.feature("github.limits")
async def test_a_limit_says_for_how_long_and_holds_for_all_that_follows(
    fault: RestFault, pause_s: float
) -> None:
    async with bench() as at:
        at.fault(fault)
        with pytest.raises(RetryableSendError) as caught:
            await at.connector.send(effect())
        assert caught.value.after_s == pause_s
        with pytest.raises(RetryableSendError) as caught:
            await at.connector.send(replace(effect(), idempotency_key="another"))
        assert caught.value.after_s == pause_s
        assert at.calls("POST") == 1
        at.memory.pass_time(pause_s)
        await at.connector.send(effect(tries=1))
        assert len(at.bodies()) == 1


@pytest.mark.clause("B15.4")
@pytest.mark.feature("github.limits")
async def test_the_secondary_limit_doubles_with_each_try_up_to_an_hour() -> None:
    async with bench() as at:
        pauses = list[float | None]()
        for tries in (0, 1, 2, 9):
            at.fault(RestFault.SECONDARY, method="")
            with pytest.raises(RetryableSendError) as caught:
                await at.connector.send(effect(tries=tries))
            pauses.append(caught.value.after_s)
            at.memory.pass_time(pauses[-1] or 0)
        assert pauses == [60, 120, 240, 3_600]


@pytest.mark.clause("B15.4")
@pytest.mark.feature("github.limits")
async def test_eighty_comments_a_minute_and_the_rest_later_in_order() -> None:
    async with bench() as at:
        waiting, pauses = [effect(f"Comment {number}") for number in range(100)], list[float]()
        while waiting:
            one = replace(waiting[0], idempotency_key=waiting[0].text)
            try:
                await at.connector.send(one)
            except RetryableSendError as limit:
                pauses.append(limit.after_s or 0)
                at.memory.pass_time(pauses[-1])
            else:
                waiting.pop(0)
        said = [body.splitlines()[0] for body in at.bodies()]
        assert said == [f"Comment {number}" for number in range(100)]
        assert pauses == [60]


@pytest.mark.clause("B15.3")
@pytest.mark.parametrize(
    "gone", [effect(number="99"), effect(repo="acme/gone"), effect(repo="acme/..")]
)
@pytest.mark.case("AI/209")
async def test_a_destination_that_is_gone_is_final(gone: Effect) -> None:
    async with bench() as at:
        with pytest.raises(PermanentSendError):
            await at.connector.send(gone)
        assert at.calls("POST") <= 1


@pytest.mark.parametrize(
    "address",
    [
        {},
        {"repo": "acme/app"},
        {"repo": "acme/app", "number": "1/../2"},
        {"repo": "acme/app", "number": "\N{FULLWIDTH DIGIT ONE}"},
        {"repo": "acme/app?x=", "number": "1"},
        {"repo": "acme", "number": "1"},
    ],
)
async def test_a_destination_that_is_none_is_final_and_calls_nobody(
    address: dict[str, str],
) -> None:
    async with bench() as at:
        to = Destination(source="github", kind="comment", address=tuple(address.items()))
        with pytest.raises(PermanentSendError, match="No destination"):
            await at.connector.send(replace(effect(), destination=to))
        assert not at.sandbox.rest.calls


async def test_a_locked_thread_is_final() -> None:
    async with bench() as at:
        thread = at.sandbox.world.issue(REPO, 1)
        at.sandbox.world.put_issue(replace(thread, locked=True))
        with pytest.raises(PermanentSendError, match="locked"):
            await at.connector.send(effect())


async def test_a_refused_token_is_for_a_person() -> None:
    async with bench(token="another") as at:
        with pytest.raises(ConnectorAuthFailedError, match="Bad credentials"):
            await at.connector.send(effect())
        with pytest.raises(ConnectorAuthFailedError, match="Bad credentials"):
            await at.connector.validate()


@pytest.mark.clause("B15.4")
async def test_a_long_text_is_sent_whole_in_parts_and_only_once() -> None:
    async with bench() as at:
        text = "\n".join(f"line {number}" for number in range(15_000))
        at.fault(RestFault.ERROR_502)
        with pytest.raises(RetryableSendError):
            await at.connector.send(effect(text))
        receipt = await at.connector.send(effect(text, tries=1))
        again = await at.connector.send(effect(text, tries=2))
        bodies = at.bodies()
        assert len(bodies) == 3
        assert all(len(body) <= MAX_BODY_CHARS for body in bodies)
        assert all(f"line {number}\n" in "\n".join(bodies) for number in range(15_000))
        assert len(receipt.provider_id.split(",")) == 3
        assert again == replace(receipt, found=True)


async def test_parts_that_are_missing_are_sent_and_the_others_are_not() -> None:
    async with bench() as at:
        text = "x" * 100_000
        await at.connector.send(effect(text))
        _, last = at.sandbox.world.comments_of(REPO, 1)
        del at.sandbox.world.comments[last.id]
        receipt = await at.connector.send(effect(text, tries=1))
        assert not receipt.found
        assert at.calls("POST") == 3
        assert [body[:5] for body in at.bodies()] == ["(1/2)", "(2/2)"]


@pytest.mark.parametrize("text", ["", " \n", "x" * (11 * MAX_BODY_CHARS)])
async def test_a_text_that_cannot_be_sent_is_final_and_calls_nobody(text: str) -> None:
    async with bench() as at:
        with pytest.raises(PermanentSendError):
            await at.connector.send(effect(text))
        assert not at.sandbox.rest.calls


@pytest.mark.feature("github.token", "common.doctor")
async def test_signing_in_tells_who_and_what_is_left() -> None:
    async with bench() as at:
        probe = await at.connector.validate()
        assert probe.ok
        assert probe.summary == f"Signed in as {BOT}, 4999 calls left"
        assert probe.scopes == ("repo",)


async def test_a_token_of_somebody_else_is_not_the_bots() -> None:
    async with bench(login="ann") as at:
        probe = await at.connector.validate()
        assert not probe.ok
        assert probe.summary == f"bot_login is {BOT}, but the token belongs to ann"


async def test_a_source_that_was_stopped_sends_nothing_and_stops_at_once() -> None:
    async with bench() as at:
        await at.connector.stop(timeout_s=1)
        with pytest.raises(ConnectorNotReadyError):
            await at.connector.send(effect())
        with pytest.raises(ConnectorNotReadyError):
            await at.connector.validate()


async def test_stopping_cuts_a_call_that_hangs() -> None:
    async with bench(timeout_s=30) as at, asyncio.timeout(5):
        at.fault(RestFault.HANG)
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(unsettled(at.connector))
            await at.sandbox.rest.hanging.wait()
            await at.connector.stop(timeout_s=1)
        assert sending.result()


async def unsettled(connector: GitHubConnector) -> bool:
    with pytest.raises((UnknownSendError, RetryableSendError)):
        await connector.send(effect())
    return True


async def test_a_missing_secret_is_named_and_never_printed() -> None:
    memory = MemoryContext(secrets={"env:S": SECRET})
    with pytest.raises(ConnectorAuthFailedError, match="env:T"):
        async with started(memory):
            pass


@pytest.mark.clause("B2.3")
async def test_what_was_missed_is_not_made_up() -> None:
    async with bench() as at:
        until = at.memory.now() + timedelta(hours=1)
        assert [one async for one in at.connector.backfill(None, until)] == []
