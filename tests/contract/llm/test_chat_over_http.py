"""The chat adapter against the scripted server, over HTTP: every quirk of an endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from fixtures.answering import answered_by
from upright.api import Secret
from upright.core.backoff import Backoff
from upright.core.transcript import Message, Role, ToolCall, ToolSpec
from upright.engine.ports import (
    ChatReply,
    ChatRequest,
    ModelAuthError,
    ModelRequestError,
    ModelUnavailableError,
)
from upright.llm.chat import OpenAIChat
from upright.llm.endpoint import Bounds, ModelSettings
from upright.llm.scripted.script import parse
from upright.llm.scripted.server import ScriptedModel

SAID: Final = "Grüße, 世界: all is well 🚀, and there is more of it to say."
SCRIPT: Final = parse(f"""
[agents.worker]
offers = ["run"]

[agents.talker]

[[rules]]
name = "two"
agent = "worker"

[[rules.calls]]
tool = "run"
arguments = {{ argv = ["echo", "世界 🚀"] }}

[[rules.calls]]
tool = "run"
arguments = {{ argv = ["true"] }}

[[rules]]
name = "talk"
say = "{SAID}"
""")
BOUNDS: Final = Bounds(
    first_byte_s=5.0,
    idle_s=5.0,
    whole_s=10.0,
    backoff=Backoff(base_s=1.0, cap_s=8.0, max_tries=3),
    max_retry_after_s=30.0,
)
RUN: Final = ToolSpec(name="run", description="Run a command.", parameters={"type": "object"})
ASKED: Final = (
    Message(role=Role.SYSTEM, text="You are a test."),
    Message(role=Role.USER, text="How is it?"),
)


@dataclass
class RecordingClock:
    """Wall time stands still; nothing is slept, but noted."""

    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)
        await asyncio.sleep(0)


@dataclass
class Endpoint:
    """A running server and an adapter to it."""

    server: TestServer
    http: aiohttp.ClientSession
    clock: RecordingClock
    chats: list[OpenAIChat] = field(default_factory=list)
    first_bytes: list[float] = field(default_factory=list)
    chars: int = 0

    def chat(self, bounds: Bounds = BOUNDS, base_url: str = "") -> OpenAIChat:
        settings = ModelSettings(
            base_url=base_url or str(self.server.make_url("/v1")),
            model="scripted",
            api_key=Secret("sk-test"),
            bounds=bounds,
        )
        self.chats.append(OpenAIChat(settings, self.clock, roll=lambda: 0.5))
        return self.chats[-1]

    async def ask(self, *tools: ToolSpec, bounds: Bounds = BOUNDS) -> ChatReply:
        return await self.chat(bounds).complete(request(*tools), self.first_byte)

    def first_byte(self, chars: int) -> None:
        self.chars += chars
        if not self.first_bytes:
            self.first_bytes.append(self.clock.monotonic())

    async def fault(self, kind: str, **more: object) -> None:
        url = self.server.make_url("/_scripted/faults")
        async with self.http.post(url, json={"kind": kind, **more}) as response:
            assert response.status == 200, await response.text()

    async def stats(self) -> dict[str, Any]:
        async with self.http.get(self.server.make_url("/_scripted/stats")) as response:
            report: dict[str, Any] = await response.json()
            return report


def request(*tools: ToolSpec, messages: tuple[Message, ...] = ASKED) -> ChatRequest:
    return ChatRequest(role="worker", session="se_1", messages=messages, tools=tools)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    server = TestServer(ScriptedModel(SCRIPT).application())
    async with server, aiohttp.ClientSession() as http:
        made = Endpoint(server=server, http=http, clock=RecordingClock())
        yield made
        for chat in made.chats:
            await chat.stop()


async def test_text_comes_whole_with_counts_times_and_price(endpoint: Endpoint) -> None:
    reply = await endpoint.ask()
    assert reply.text == SAID
    assert (reply.model, reply.calls, reply.attempts) == ("scripted", (), 1)
    assert reply.usage.input > 0
    assert reply.usage.output > 0
    assert reply.cost_usd_micros == 0
    assert 0 < reply.first_byte_s <= reply.seconds
    assert len(endpoint.first_bytes) == 1
    assert endpoint.chars == len(SAID)


async def test_calls_come_whole_each_with_its_id(endpoint: Endpoint) -> None:
    reply = await endpoint.ask(RUN)
    assert [call.name for call in reply.calls] == ["run", "run"]
    assert [json.loads(call.arguments)["argv"] for call in reply.calls] == [
        ["echo", "世界 🚀"],
        ["true"],
    ]
    assert len({call.id for call in reply.calls}) == 2


@pytest.mark.clause("B8.1")
async def test_the_next_step_hits_the_cache_and_busts_nothing(endpoint: Endpoint) -> None:
    chat = endpoint.chat()
    first = await chat.complete(request(RUN), endpoint.first_byte)
    answered = tuple(
        Message(role=Role.TOOL, call_id=call.id, text='{"outcome":"exited","code":0}')
        for call in first.calls
    )
    said = Message(role=Role.ASSISTANT, calls=first.calls)
    longer = request(RUN, messages=(*ASKED, said, *answered))
    second = await chat.complete(longer, endpoint.first_byte)
    stats = await endpoint.stats()
    before, after = stats["last"]
    assert after["cached_bytes"] == before["prompt_bytes"]
    assert (first.usage.cached, second.usage.cached) == (0, before["prompt_bytes"] // 4)
    assert (stats["cache"]["busts"], stats["cache"]["hits"]) == (0, 1)
    assert stats["by_agent"] == {"worker": 2}


async def test_a_changed_prefix_is_counted_as_a_bust(endpoint: Endpoint) -> None:
    chat = endpoint.chat()
    for clock in ("10:00", "10:01"):
        volatile = (Message(role=Role.SYSTEM, text=f"It is {clock}."), *ASKED[1:])
        await chat.complete(request(messages=volatile), endpoint.first_byte)
    assert (await endpoint.stats())["cache"]["busts"] == 1


async def test_too_many_requests_is_retried_after_the_time_asked_for(endpoint: Endpoint) -> None:
    await endpoint.fault("rate_limited", retry_after_s=7)
    reply = await endpoint.ask()
    assert (reply.attempts, endpoint.clock.slept) == (2, [7.0])


async def test_too_many_requests_without_a_time_backs_off_with_full_jitter(
    endpoint: Endpoint,
) -> None:
    await endpoint.fault("rate_limited", calls=2)
    reply = await endpoint.ask()
    assert (reply.attempts, endpoint.clock.slept) == (3, [0.5, 1.0])
    assert len(endpoint.first_bytes) == 1


async def test_a_long_time_to_wait_is_handed_to_the_caller(endpoint: Endpoint) -> None:
    await endpoint.fault("rate_limited", retry_after_s=3_600)
    with pytest.raises(ModelUnavailableError) as raised:
        await endpoint.ask()
    assert (raised.value.retry_after_s, endpoint.clock.slept) == (3_600.0, [])


@pytest.mark.parametrize(
    "kind",
    ["server_error", "cut", "clean_cut", "garbage", "stream_error", "empty_choices"],
)
@pytest.mark.parametrize("tools", [(), (RUN,)], ids=["text", "calls"])
async def test_what_breaks_off_is_tried_again_and_nothing_of_it_is_kept(
    endpoint: Endpoint, kind: str, tools: tuple[ToolSpec, ...]
) -> None:
    whole = await endpoint.ask(*tools)
    await endpoint.fault(kind, after_chunks=3)
    reply = await endpoint.ask(*tools)
    assert (reply.text, reply.calls, reply.attempts) == (whole.text, whole.calls, 2)
    assert len(endpoint.clock.slept) == 1


@pytest.mark.parametrize("kind", ["server_error", "rate_limited", "cut", "empty_choices"])
async def test_tries_are_bounded(endpoint: Endpoint, kind: str) -> None:
    await endpoint.fault(kind, calls=100)
    with pytest.raises(ModelUnavailableError):
        await endpoint.ask()
    assert (await endpoint.stats())["faults_pending"] == 97
    assert len(endpoint.clock.slept) == 2


@pytest.mark.parametrize("kind", ["unauthorized", "quota"])
async def test_a_refused_key_or_bill_is_not_tried_again(endpoint: Endpoint, kind: str) -> None:
    await endpoint.fault(kind)
    with pytest.raises(ModelAuthError) as raised:
        await endpoint.ask()
    assert "sk-test" not in str(raised.value)
    assert endpoint.clock.slept == []


@pytest.mark.parametrize("kind", ["bad_request", "not_found"])
async def test_a_refused_request_is_not_tried_again(endpoint: Endpoint, kind: str) -> None:
    await endpoint.fault(kind)
    with pytest.raises(ModelRequestError):
        await endpoint.ask()
    assert endpoint.clock.slept == []


async def test_a_role_without_a_model_is_a_refused_request(endpoint: Endpoint) -> None:
    settings = ModelSettings(base_url=str(endpoint.server.make_url("/v1")), models={"router": "m"})
    chat = OpenAIChat(settings, endpoint.clock, roll=lambda: 0.5)
    with pytest.raises(ModelRequestError, match="worker"):
        await chat.complete(request(), endpoint.first_byte)


async def test_a_closed_port_is_unavailable_and_says_why(endpoint: Endpoint) -> None:
    async with answered_by(_hang_up) as port:
        pass  # nobody listens there any more
    chat = endpoint.chat(base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(ModelUnavailableError, match="Connect"):
        await chat.complete(request(), endpoint.first_byte)
    assert len(endpoint.clock.slept) == 2


async def test_torn_characters_come_whole(endpoint: Endpoint) -> None:
    await endpoint.fault("split_utf8", calls=2)
    text, calls = await endpoint.ask(), await endpoint.ask(RUN)
    assert text.text == SAID
    assert json.loads(calls.calls[0].arguments)["argv"][1] == "世界 🚀"


@pytest.mark.parametrize("kind", ["missing_ids", "same_ids"])
@pytest.mark.clause("B8.2")
async def test_calls_get_ids_that_are_new_in_the_session(endpoint: Endpoint, kind: str) -> None:
    chat = endpoint.chat()
    await endpoint.fault(kind, calls=2)
    messages: tuple[Message, ...] = ASKED
    seen: list[str] = []
    for _ in range(2):
        reply = await chat.complete(request(RUN, messages=messages), endpoint.first_byte)
        seen += [call.id for call in reply.calls]
        answers = (Message(role=Role.TOOL, call_id=c.id, text="{}") for c in reply.calls)
        messages = (*messages, Message(role=Role.ASSISTANT, calls=reply.calls), *answers)
    assert len(set(seen)) == 4
    assert all(seen)


async def test_a_wrong_reason_to_finish_changes_nothing(endpoint: Endpoint) -> None:
    await endpoint.fault("wrong_finish", calls=2)
    text, calls = await endpoint.ask(), await endpoint.ask(RUN)
    assert (text.text, text.calls, len(calls.calls)) == (SAID, (), 2)


async def test_a_refusal_is_what_the_model_said(endpoint: Endpoint) -> None:
    await endpoint.fault("refusal")
    reply = await endpoint.ask(RUN)
    assert (reply.text, reply.calls) == ("I can't help with that.", ())


async def test_an_invented_tool_and_bad_arguments_pass_through_and_can_be_sent_back(
    endpoint: Endpoint,
) -> None:
    chat = endpoint.chat()
    await endpoint.fault("invented_tool")
    await endpoint.fault("bad_arguments")
    invented = await chat.complete(request(RUN), endpoint.first_byte)
    cut = await chat.complete(request(RUN), endpoint.first_byte)
    assert invented.calls[0].name == "browse_web"
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(cut.calls[0].arguments)
    calls = (replace(cut.calls[0], id="a"), ToolCall(id="b", name="no such tool!", arguments="{}"))
    answers = (Message(role=Role.TOOL, call_id=call.id, text="{}") for call in calls)
    history = (*ASKED, Message(role=Role.ASSISTANT, calls=calls), *answers)
    again = await chat.complete(request(RUN, messages=history), endpoint.first_byte)
    assert len(again.calls) == 2


@pytest.mark.clause("B16.1")
async def test_absent_counts_are_reckoned_so_that_a_budget_sees_them(endpoint: Endpoint) -> None:
    counted = await endpoint.ask()
    await endpoint.fault("no_usage")
    reply = await endpoint.ask()
    assert (reply.text, reply.usage.cached) == (SAID, 0)
    assert reply.usage.output == -(-len(SAID) // 4)
    assert abs(reply.usage.input - counted.usage.input) < 5


@pytest.mark.parametrize("after_chunks", [0, 2], ids=["first byte", "between chunks"])
async def test_ten_minutes_of_silence_end_at_the_bound(
    endpoint: Endpoint, after_chunks: int
) -> None:
    await endpoint.fault("silence", seconds=600, after_chunks=after_chunks, calls=3)
    bounds = replace(BOUNDS, first_byte_s=0.05, idle_s=0.05)
    with pytest.raises(ModelUnavailableError, match=r"no first byte|silent"):
        await endpoint.ask(bounds=bounds)


async def test_one_try_ends_at_its_whole_bound(
    endpoint: Endpoint,
) -> None:
    await endpoint.fault("silence", seconds=600, after_chunks=2, calls=3)
    with pytest.raises(ModelUnavailableError, match="in all"):
        await endpoint.ask(bounds=replace(BOUNDS, whole_s=0.05))


@pytest.mark.clause("B9.3")
async def test_cancelling_closes_the_stream_at_once(endpoint: Endpoint) -> None:
    closed, began = asyncio.Event(), asyncio.Event()

    async def stream_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        chunk = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + chunk)
        while await reader.read(65_536):
            pass
        closed.set()

    async with answered_by(stream_for_ever) as port:
        chat = endpoint.chat(base_url=f"http://127.0.0.1:{port}/v1")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(chat.complete(request(), lambda _: began.set()))
            await began.wait()
            cancelled_at = endpoint.clock.monotonic()
            task.cancel()
            await closed.wait()
            assert endpoint.clock.monotonic() - cancelled_at < 0.3
    assert task.cancelled()


async def test_the_client_opens_again_after_a_stop(endpoint: Endpoint) -> None:
    chat = endpoint.chat()
    await chat.start()
    await chat.stop()
    reply = await chat.complete(request(), endpoint.first_byte)
    assert reply.text == SAID


async def test_the_session_is_named_to_the_endpoint(endpoint: Endpoint) -> None:
    await endpoint.ask()
    assert (await endpoint.stats())["last"][0]["conversation"] == "se_1"


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
