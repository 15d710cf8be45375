"""The Slack connector sends to the sandbox: a message becomes visible once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from fixtures.connector import MemoryContext
from fixtures.slack import ANN, DEV, ME, memory, sandbox, started
from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Destination,
    Effect,
    PermanentSendError,
    RetryableSendError,
    UnknownSendError,
)
from upright_slack.connector import SlackConnector
from upright_slack.sandbox.faults import CallFault, CallRule
from upright_slack.sandbox.server import Sandbox


@dataclass(frozen=True, slots=True)
class Bench:
    """A started connector, the sandbox it speaks to, and the clock of both."""

    connector: SlackConnector
    at: Sandbox
    memory: MemoryContext
    root: str

    def said(self) -> list[str]:
        messages = self.at.world.channel(DEV).messages.values()
        return [str(one["text"]) for one in messages if one["user"] == ME]

    def fault(self, fault: CallFault, *, done: bool = False, count: int = 1) -> None:
        rule = CallRule(fault=fault, method="chat.postMessage", done=done, count=count)
        self.at.api.faults.calls.append(rule)

    def posts(self) -> int:
        return self.at.api.calls.count("chat.postMessage")

    def effect(self, text: str = "Done.", *, tries: int = 0, kind: str = "thread") -> Effect:
        address = (("channel", DEV), ("thread_ts", self.root))
        to = Destination(source="slack", kind=kind, address=address)
        return Effect(id="ob_1", destination=to, text=text, idempotency_key="key--1", tries=tries)


@asynccontextmanager
async def bench(*, timeout_s: float = 5) -> AsyncIterator[Bench]:
    context = memory()
    async with sandbox(context) as at:
        root = str(at.world.post(DEV, ANN, "what fixed it?")["ts"])
        async with started(at, context, timeout_s=timeout_s) as connector:
            yield Bench(connector, at, context, root)


@pytest.mark.feature("slack.thread")
@pytest.mark.clause("B15.1", "B15.4")
async def test_an_answer_goes_into_the_thread_in_slacks_own_marks() -> None:
    async with bench() as at:
        receipt = await at.connector.send(at.effect("**Fixed** by [#7](https://example.org/7)"))
        assert at.said() == ["*Fixed* by <https://example.org/7|#7>"]
        (sent,) = at.at.world.replies(DEV, at.root)[1:]
        assert receipt.provider_id == f"{DEV}:{sent['ts']}"
        assert f"thread_ts={at.root}" in receipt.url
        assert not receipt.found
        assert at.at.api.calls.count("conversations.replies") == 0


@pytest.mark.feature("slack.idempotency")
@pytest.mark.clause("B15.2")
@pytest.mark.parametrize("kind", ["thread", "room"])
async def test_a_second_try_finds_the_first_and_sends_nothing(kind: str) -> None:
    async with bench() as at:
        first = await at.connector.send(at.effect(kind=kind))
        second = await at.connector.send(at.effect(kind=kind, tries=1))
        assert second == replace(first, found=True)
        assert at.posts() == 1


@pytest.mark.clause("B15.2")
@pytest.mark.parametrize("fault", [CallFault.DROP, CallFault.ERROR_500, CallFault.GARBLED])
async def test_an_answer_that_is_lost_is_looked_for(fault: CallFault) -> None:
    async with bench() as at:
        at.fault(fault, done=True)
        receipt = await at.connector.send(at.effect())
        assert receipt.provider_id
        assert len(at.said()) == 1


async def test_what_is_not_there_after_a_lost_answer_is_unknown() -> None:
    async with bench(timeout_s=0.3) as at:
        at.fault(CallFault.HANG)
        with pytest.raises(UnknownSendError, match="not among the messages"):
            await at.connector.send(at.effect())
        await at.connector.send(at.effect(tries=1))
        assert len(at.said()) == 1


@pytest.mark.feature("slack.rate")
async def test_a_rate_limit_holds_for_all_that_is_sent() -> None:
    async with bench() as at:
        at.fault(CallFault.LIMITED)
        with pytest.raises(RetryableSendError) as limited:
            await at.connector.send(at.effect())
        assert limited.value.after_s == 2
        with pytest.raises(RetryableSendError, match="still holds"):
            await at.connector.send(at.effect())
        assert at.posts() == 1
        at.memory.pass_time(2)
        await at.connector.send(at.effect(tries=1))
        assert len(at.said()) == 1


@pytest.mark.feature("slack.out", "slack.rate")
@pytest.mark.clause("B15.4")
async def test_a_long_text_is_split_a_second_apart_and_resumed_where_it_stopped() -> None:
    async with bench() as at:
        text = "\n\n".join(f"{n} " + "word " * 300 for n in range(6))
        began = at.memory.now()
        at.at.api.faults.calls.append(
            CallRule(fault=CallFault.ERROR_503, method="chat.postMessage", count=1)
        )
        with pytest.raises(UnknownSendError):
            await at.connector.send(at.effect(text))
        receipt = await at.connector.send(at.effect(text, tries=1))
        assert len(receipt.provider_id.split(",")) == len(at.said()) > 1
        assert all(len(one) <= 4_000 for one in at.said())
        assert "\n".join(at.said()).split() == text.split()
        assert (at.memory.now() - began).total_seconds() >= len(at.said()) - 1
        again = await at.connector.send(at.effect(text, tries=2))
        assert again == replace(receipt, found=True)


async def test_a_channel_that_refuses_is_final() -> None:
    async with bench() as at:
        at.at.world.channel(DEV).archived = True
        with pytest.raises(PermanentSendError, match="is_archived"):
            await at.connector.send(at.effect())
        with pytest.raises(PermanentSendError, match="No destination"):
            await at.connector.send(at.effect(kind="elsewhere"))
        with pytest.raises(PermanentSendError, match="empty"):
            await at.connector.send(at.effect("  "))


async def test_credentials_that_are_refused_say_so() -> None:
    async with bench() as at:
        at.fault(CallFault.REVOKED)
        with pytest.raises(ConnectorAuthFailedError, match="token_revoked"):
            await at.connector.send(at.effect())
        at.at.api.tokens.bot = "another"
        with pytest.raises(ConnectorAuthFailedError, match="invalid_auth"):
            await at.connector.validate()
        with pytest.raises(ConnectorAuthFailedError, match="invalid_auth"):
            await SlackConnector("slack", at.connector._settings).start(at.memory)


async def test_a_service_that_is_gone_is_worth_another_try() -> None:
    async with bench() as at:
        rule = CallRule(fault=CallFault.DROP, method="auth.test", count=2)  # aiohttp reads twice
        at.at.api.faults.calls.append(rule)
        with pytest.raises(ConnectorNotReadyError):
            await at.connector.validate()
        assert (await at.connector.validate()).ok


async def test_a_reader_waits_for_a_limit_to_pass() -> None:
    async with bench() as at:
        rule = CallRule(fault=CallFault.LIMITED, method="auth.test", count=2)
        at.at.api.faults.calls.append(rule)
        began = at.memory.now()
        assert (await at.connector.validate()).ok
        assert (at.memory.now() - began).total_seconds() == 4


@pytest.mark.clause("B15.2")
async def test_a_key_that_somebody_else_carries_proves_nothing() -> None:
    async with bench() as at:
        await at.connector.send(at.effect())
        ours = at.at.world.replies(DEV, at.root)[-1]
        copy = at.at.world.post(DEV, ANN, "Done.", thread_ts=at.root, metadata=ours["metadata"])
        at.at.world.delete(DEV, str(ours["ts"]))
        receipt = await at.connector.send(at.effect(tries=1))
        assert not receipt.found
        assert receipt.provider_id != f"{DEV}:{copy['ts']}"
