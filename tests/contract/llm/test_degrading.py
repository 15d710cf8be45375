"""What an endpoint lacks degrades, over HTTP: no stream, no tools, no shapes (A7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from upright.core.backoff import Backoff
from upright.core.transcript import Message, Role, ToolSpec
from upright.engine.clock import SystemClock
from upright.engine.ports import (
    ChatRequest,
    ModelShapeError,
    ModelToolsError,
    ModelUnavailableError,
    Rung,
    Shape,
)
from upright.llm.abilities import ABILITIES
from upright.llm.chat import OpenAIChat
from upright.llm.endpoint import Bounds, ModelSettings
from upright.llm.probe import probe
from upright.llm.roles import Roles
from upright.llm.scripted.script import parse
from upright.llm.scripted.server import ScriptedModel
from upright.llm.structured import Ladder

SCRIPT: Final = parse("""
[agents.worker]
offers = ["run"]

[[rules]]
name = "work"
agent = "worker"

[[rules.calls]]
tool = "run"
arguments = { argv = ["true"] }
""")
RUN: Final = ToolSpec(name="run", description="Run a command.", parameters={"type": "object"})
WORD: Final = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "sure": {"enum": ["yes", "no"]}},
    "required": ["word", "sure"],
}
BOUNDS: Final = Bounds(backoff=Backoff(base_s=0.001, cap_s=0.001, max_tries=3))


def word_of(value: object) -> str:
    if not isinstance(value, dict) or value.get("sure") != "yes":
        problem = "sure must be yes"
        raise ValueError(problem)
    return str(value["word"])


SHAPE: Final = Shape(name="verdict", schema=WORD, parse=word_of)


@dataclass(frozen=True)
class Bench:
    chat: OpenAIChat
    server: TestServer
    http: aiohttp.ClientSession

    async def fault(self, kind: str, **more: object) -> None:
        url = self.server.make_url("/_scripted/faults")
        async with self.http.post(url, json={"kind": kind, **more}) as response:
            assert response.status == 200

    async def calls(self) -> int:
        async with self.http.get(self.server.make_url("/_scripted/stats")) as response:
            report: dict[str, Any] = await response.json()
            return sum(report["by_agent"].values())


@asynccontextmanager
async def lacking(*lacks: str) -> AsyncIterator[Bench]:
    server = TestServer(ScriptedModel(SCRIPT, lacks).application())
    async with server, aiohttp.ClientSession() as http:
        url = str(server.make_url("/v1"))
        chat = OpenAIChat(
            ModelSettings(base_url=url, model="scripted", bounds=BOUNDS),
            SystemClock(),
            roll=lambda: 0.5,
        )
        yield Bench(chat, server, http)
        await chat.stop()


def request(*tools: ToolSpec) -> ChatRequest:
    asked = (Message(role=Role.USER, text="How is it?"),)
    return ChatRequest(role="worker", session="se_1", messages=asked, tools=tools)


async def test_without_streaming_whole_answers_are_asked_for_and_it_is_remembered() -> None:
    heard: list[int] = []
    async with lacking("streaming") as bench:
        first = await bench.chat.complete(request(RUN), heard.append)
        assert bench.chat.abilities.news() == {"streaming": False}
        second = await bench.chat.complete(request(RUN), heard.append)
        assert await bench.calls() == 2
    assert [call.name for call in first.calls] == [call.name for call in second.calls] == ["run"]
    assert first.attempts == second.attempts == 1
    assert len(heard) == 2  # each answer in one piece
    assert first.usage.input > 0


async def test_a_whole_answer_that_is_refused_or_empty_is_tried_again_as_a_stream_is() -> None:
    async with lacking("streaming") as bench:
        await bench.fault("empty_choices")
        await bench.fault("server_error")
        reply = await bench.chat.complete(request(RUN), lambda _: None)
        assert reply.attempts == 3


@pytest.mark.clause("B17.5")
async def test_without_tools_the_error_says_so_and_nothing_is_tried_again() -> None:
    async with lacking("tools") as bench:
        with pytest.raises(ModelToolsError, match="not supported"):
            await bench.chat.complete(request(RUN), lambda _: None)
        assert bench.chat.abilities.has("tools") is False
        said = await bench.chat.complete(request(), lambda _: None)
        assert said.calls == ()


# ------------------------------------------------------------------ the ladder
@pytest.mark.parametrize(
    ("lacks", "rung"),
    [
        ((), Rung.SCHEMA),
        (("schema",), Rung.JSON),
        (("schema", "json"), Rung.TOOL),
        (("schema", "json", "streaming"), Rung.TOOL),
    ],
)
async def test_an_answer_in_a_shape_comes_by_the_surest_rung_there_is(
    lacks: Collection[str], rung: Rung
) -> None:
    async with lacking(*lacks) as bench:
        ladder = Ladder(bench.chat, Roles(bench.chat, {}))
        shaped = await ladder.ask(request(), SHAPE)
        assert (shaped.value, shaped.rung, len(shaped.replies)) == ("hello", rung, 1)
        before = await bench.calls()
        again = await ladder.ask(request(), SHAPE)
        assert (again.rung, await bench.calls()) == (rung, before + 1)


@pytest.mark.parametrize("lacks", [(), ("schema",), ("schema", "json")])
async def test_what_does_not_fit_is_repaired_once(lacks: Collection[str]) -> None:
    async with lacking(*lacks) as bench:
        ladder = Ladder(bench.chat, Roles(bench.chat, {}))
        await bench.fault("prose")
        shaped = await ladder.ask(request(), SHAPE)
        assert (shaped.value, len(shaped.replies)) == ("hello", 2)


@pytest.mark.parametrize("kind", ["prose", "bad_arguments", "refusal"])
async def test_what_does_not_fit_twice_is_a_typed_failure_with_its_bill(kind: str) -> None:
    lacks = ("schema", "json") if kind == "bad_arguments" else ()
    async with lacking(*lacks) as bench:
        ladder = Ladder(bench.chat, Roles(bench.chat, {}))
        await bench.fault(kind, calls=2)
        with pytest.raises(ModelShapeError) as raised:
            await ladder.ask(request(), SHAPE)
        assert len(raised.value.replies) == 2
        assert all(reply.usage.input > 0 for reply in raised.value.replies)


async def test_where_every_shape_is_refused_words_are_asked_for() -> None:
    async with lacking("schema", "json", "tools", "forced_tool") as bench:
        ladder = Ladder(bench.chat, Roles(bench.chat, {}))
        with pytest.raises(ModelShapeError):  # the script has nothing to say
            await ladder.ask(request(), SHAPE)
        assert await bench.calls() == 2


# ------------------------------------------------------------------ tries in vain
@pytest.mark.clause("B16.1")
@pytest.mark.parametrize("kind", ["cut", "clean_cut", "garbage", "stream_error"])
async def test_what_broke_off_in_mid_stream_is_reckoned(kind: str) -> None:
    async with lacking() as bench:
        await bench.fault(kind, after_chunks=3, calls=2)
        reply = await bench.chat.complete(request(RUN), lambda _: None)
        assert reply.attempts == 3
        assert reply.wasted is not None
        assert reply.wasted.usage.input > 0
        await bench.fault(kind, after_chunks=3, calls=3)
        with pytest.raises(ModelUnavailableError) as raised:
            await bench.chat.complete(request(RUN), lambda _: None)
        assert raised.value.attempts == 3
        assert raised.value.wasted is not None
        assert raised.value.wasted.usage.input > reply.wasted.usage.input


@pytest.mark.clause("B16.1")
async def test_what_was_refused_at_once_is_on_no_bill() -> None:
    async with lacking() as bench:
        await bench.fault("rate_limited")
        reply = await bench.chat.complete(request(RUN), lambda _: None)
        assert (reply.attempts, reply.wasted) == (2, None)


# ------------------------------------------------------------------ the probe
async def test_a_probe_of_an_endpoint_that_can_do_everything_finds_nothing_missing() -> None:
    async with lacking() as bench:
        found = await probe(bench.chat, "worker")
    assert found.can == dict.fromkeys(ABILITIES, True)
    assert found.lacks == ()


@pytest.mark.parametrize("missing", ABILITIES)
async def test_a_probe_says_what_degrades_for_each_thing_that_is_missing(missing: str) -> None:
    async with lacking(missing) as bench:
        found = await probe(bench.chat, "worker")
    lost = {name for name, has in found.can.items() if not has}
    implied = {"tools": {"tools", "parallel", "forced_tool"}, "usage": {"usage", "cached"}}
    assert lost == implied.get(missing, {missing})
    assert len(found.lacks) == len(lost)
    assert found.lacks[0].startswith(f"no {missing.replace('_', ' ')}: ")


async def test_a_probe_of_an_endpoint_that_is_away_raises() -> None:
    async with lacking() as bench:
        await bench.fault("server_error", calls=9)
        with pytest.raises(ModelUnavailableError):
            await probe(bench.chat, "worker")


# ------------------------------------------------------------------ roles
@pytest.mark.clause("B17.4")
async def test_each_role_is_asked_at_its_own_endpoint() -> None:
    def asked(role: str) -> ChatRequest:
        return ChatRequest(role=role, session="se_1", messages=request().messages)

    async with lacking() as small, lacking() as strong:
        roles = Roles(small.chat, {"worker": strong.chat})
        await roles.start()
        for role in ("worker", "worker", "router", "advisor"):
            await roles.complete(asked(role), lambda _: None)
        assert (await small.calls(), await strong.calls()) == (2, 2)
        assert len(roles.endpoints()) == 2
        await roles.stop()
