"""A real stream that is cut: the turn's model is an endpoint over HTTP (B9.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from fixtures.agents import Agents, ScriptedChat
from fixtures.still_hub import StillHub
from upright.core.strategy import OPERATOR_INTERRUPT
from upright.core.work import WorkState
from upright.engine.clock import SystemClock
from upright.engine.ports import ChatReply, ChatRequest
from upright.llm.chat import OpenAIChat, Roll
from upright.llm.endpoint import ModelSettings
from upright.llm.scripted.script import parse
from upright.llm.scripted.server import ScriptedModel
from upright.store import people
from upright.store.tables import EVENT, LEDGER

SCRIPT = parse("""
[agents.worker]
offers = ["run"]

[[rules]]
name = "waits"
agent = "worker"

[[rules.calls]]
tool = "wait"
arguments = { for = "thread", why = "CI runs" }
""")
FOR_EVER_S = 3600


class Heard(OpenAIChat):
    """Tells when a stream has begun, and when one was closed before its end."""

    def __init__(self, settings: ModelSettings, clock: SystemClock, roll: Roll) -> None:
        super().__init__(settings, clock, roll)
        self.begun = asyncio.Event()
        self.cut = 0

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        def heard(chars: int) -> None:
            on_part(chars)
            self.begun.set()

        try:
            return await super().complete(request, heard)
        except asyncio.CancelledError:
            self.cut += 1
            raise


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    made = TestServer(ScriptedModel(SCRIPT).application())
    await made.start_server()
    yield made
    await made.close()


@pytest.mark.clause("B9.3", "B16.1")
async def test_a_stream_that_has_begun_is_closed_and_the_endpoint_asked_again(
    hub: StillHub, server: TestServer
) -> None:
    await hub.device()
    item = await hub.opened()
    settings = ModelSettings(base_url=str(server.make_url("/v1")), model="scripted")
    chat = Heard(settings, SystemClock(), lambda: 0.5)
    agents = Agents(hub, ScriptedChat(), model=chat)
    async with ClientSession() as http:
        silence = {"kind": "silence", "seconds": FOR_EVER_S, "after_chunks": 2}
        async with http.post(server.make_url("/_scripted/faults"), json=silence) as answer:
            assert answer.status == 200

        async def come() -> None:
            await chat.begun.wait()
            await hub.do(lambda u: people.say(u, item.session, "Stop!", OPERATOR_INTERRUPT))
            agents.signals.notify(item.session)

        async with asyncio.TaskGroup() as group:
            group.create_task(come())
            await agents.go()
    await chat.stop()
    assert chat.cut == 1
    rows = [(row["stop"], row["data"].get("verdict")) for row in await hub.rows(EVENT)]
    order = [rows.index(("strategy.chosen", "cancel"))]
    order += [n for n, (stop, _) in enumerate(rows) if stop in {"llm.cut", "llm.replied"}]
    assert order == sorted(order)
    assert [stop for stop, _ in rows if stop.startswith("llm.")] == ["llm.cut", "llm.replied"]
    cut, whole = await hub.rows(LEDGER, kind="model")
    assert cut["tokens_input"] > 0
    assert whole["tokens_output"] > 0
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
