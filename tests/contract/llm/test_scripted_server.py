"""The scripted server as a service: its doors, its start and its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from upright.cli.model import group
from upright.llm.scripted.demo import demo_script
from upright.llm.scripted.errors import ScriptError
from upright.llm.scripted.script import parse
from upright.llm.scripted.serve import running, serve
from upright.llm.scripted.server import ScriptedModel

SCRIPT: Final = parse("""
[agents.any]

[calls]
go = { tool = "go" }

[[rules]]
name = "calls"
uncalled = ["go"]
calls = [{ tool = "go", arguments = { x = "y" } }]

[[rules]]
name = "says"
say = "It was ${go.x}."
""")
ASKED: Final = {"role": "user", "content": "go"}

Client = TestClient[Any, Any]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with TestClient(TestServer(ScriptedModel(SCRIPT).application())) as made:
        yield made


async def completed(client: Client, *messages: object, **more: object) -> dict[str, Any]:
    body = {"model": "m", "messages": list(messages), **more}
    async with client.post("/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        answer: dict[str, Any] = await response.json()
        return answer


async def test_an_answer_comes_whole_when_no_stream_is_asked_for(client: Client) -> None:
    first = await completed(client, ASKED)
    choice = first["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["arguments"]) == ("tool_calls", '{"x": "y"}')
    result = {"role": "tool", "tool_call_id": call["id"], "content": "{}"}
    second = await completed(client, ASKED, choice["message"], result)
    assert second["choices"][0]["message"] == {"role": "assistant", "content": "It was y."}
    assert second["choices"][0]["finish_reason"] == "stop"
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_the_same_request_has_the_same_answer(client: Client) -> None:
    first, second = [await completed(client, ASKED) for _ in range(2)]
    first["usage"]["prompt_tokens_details"] = second["usage"]["prompt_tokens_details"] = {}
    assert first == second


async def test_the_models_are_listed(client: Client) -> None:
    async with client.get("/v1/models") as response:
        assert [row["id"] for row in (await response.json())["data"]] == ["scripted"]


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", '"x"', '{"messages":1}', '{"messages":[],"tools":[{}]}'],
)
async def test_what_is_no_chat_request_is_refused_as_such(client: Client, body: str) -> None:
    async with client.post("/v1/chat/completions", data=body) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "invalid_request"


async def test_a_script_that_fails_says_so_in_the_answer() -> None:
    script = parse('[[rules]]\nname = "r"\nsay = "${gone}"')
    async with TestClient(TestServer(ScriptedModel(script).application())) as client:
        body = {"messages": [ASKED]}
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 400
            assert "gone" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("body", ["{", '{"kind":"gremlin"}', "[1]"])
async def test_a_fault_that_is_wrong_is_refused(client: Client, body: str) -> None:
    async with client.post("/_scripted/faults", data=body) as response:
        assert response.status == 400


async def test_faults_can_be_cleared_and_are_counted_when_met(client: Client) -> None:
    faults = [{"kind": "server_error"}, {"kind": "refusal", "calls": 5}]
    async with client.post("/_scripted/faults", json=faults) as response:
        assert await response.json() == {"pending": 6}
    async with client.post("/v1/chat/completions", json={"messages": [ASKED]}) as response:
        assert response.status == 500
    refused = await completed(client, ASKED)
    assert refused["choices"][0]["message"]["refusal"]
    async with client.delete("/_scripted/faults") as response:
        assert await response.json() == {"pending": 0}
    await completed(client, ASKED)
    async with client.get("/_scripted/stats") as response:
        stats = await response.json()
    assert stats["faults"] == {"server_error": 1, "refusal": 1}
    assert (stats["calls"], stats["by_agent"], stats["by_rule"]) == (2, {"any": 2}, {"calls": 2})


async def test_it_says_where_it_is_and_ends_when_told(tmp_path: Path) -> None:
    ready, stop = tmp_path / "ready", asyncio.Event()
    stop.set()
    await serve(demo_script(), "127.0.0.1", 0, ready, stop=stop)
    text = await asyncio.to_thread(ready.read_text)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1\n", text)


async def test_it_answers_while_it_runs_and_not_after() -> None:
    async with aiohttp.ClientSession() as http:
        async with running(SCRIPT, "127.0.0.1", 0) as url, http.get(f"{url}/models") as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ClientConnectionError):
            await http.get(f"{url}/models")


async def test_a_taken_port_is_an_error() -> None:
    async with running(SCRIPT, "127.0.0.1", 0) as url:
        port = int(url.split(":")[2].removesuffix("/v1"))
        with pytest.raises(OSError, match=r"in use"):
            await serve(demo_script(), "127.0.0.1", port)


async def test_a_silent_stream_does_not_hold_up_the_end() -> None:
    fault = {"kind": "silence", "seconds": 600, "after_chunks": 1}
    body = {"messages": [ASKED], "stream": True}
    async with asyncio.timeout(5), aiohttp.ClientSession() as http:
        async with running(SCRIPT, "127.0.0.1", 0) as url:
            await http.post(f"{url.removesuffix('/v1')}/_scripted/faults", json=fault)
            response = await http.post(f"{url}/chat/completions", json=body)
            await response.content.readline()
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_a_script_that_is_not_there_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"gone\.toml"):
        await serve(tmp_path / "gone.toml", "127.0.0.1", 0)


def test_the_command_refuses_a_bad_script_as_wrong_usage(tmp_path: Path) -> None:
    script = tmp_path / "bad.toml"
    script.write_text("[agent]", encoding="utf-8")
    done = CliRunner().invoke(group, ["serve", "--script", str(script)])
    assert (done.exit_code, "no such section" in done.output) == (2, True)


def test_the_demos_script_is_shipped_as_a_file() -> None:
    assert demo_script().is_file()
