"""Model: a small model server that notes when the first byte of each request came.

The router is answered with a ``spawn`` for the trigger it was told of, a worker with a ``wait``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Any, Final

_TRIGGER: Final = re.compile(r"^\[\d+ of \d+\] trigger (tr_[0-9a-z]{26}) ", re.MULTILINE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@dataclass(slots=True)
class Heard:
    """What came: for each worker's request, when its first byte was here."""

    workers: asyncio.Queue[float] = field(default_factory=asyncio.Queue)
    routers: int = 0
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def answer(self, at: float, body: bytes) -> bytes:
        """Note a request; return the answer."""
        request = json.loads(body)
        tools = {tool["function"]["name"] for tool in request.get("tools", [])}
        last = request["messages"][-1]
        if "spawn" not in tools:
            self.workers.put_nowait(at)
            waiting = {"for": "thread", "why": "a bench", "look_first": "nothing"}
            return self._said(call=("wait", waiting))
        self.routers += 1
        if last["role"] != "user":
            return self._said(text="Done.")
        trigger = _TRIGGER.findall(last["content"])[-1]
        spawn = {"trigger": trigger, "goal": "measure", "criteria": ["measured"], "why": "a bench"}
        return self._said(call=("spawn", spawn))

    def _said(self, *, text: str = "", call: tuple[str, dict[str, Any]] | None = None) -> bytes:
        delta: dict[str, Any] = {"role": "assistant", "content": text}
        if call is not None:
            name, given = call
            function = {"name": name, "arguments": json.dumps(given)}
            made = {"index": 0, "id": f"call_{next(self._numbers)}", "type": "function"}
            delta["tool_calls"] = [{**made, "function": function}]
        reason = "tool_calls" if call else "stop"
        common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        events = [
            {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {**common, "choices": [], "usage": usage},
        ]
        parts = [f"data: {json.dumps(event)}\n\n" for event in events]
        stream = "".join([*parts, "data: [DONE]\n\n"]).encode("ascii")
        return b"%s%x\r\n%s\r\n0\r\n\r\n" % (_HEAD, len(stream), stream)


class _Connection(asyncio.Protocol):
    """One connection of a client; requests with a Content-Length, one at a time."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._buffer = b""
        self._began = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._buffer:
            self._began = perf_counter()
        self._buffer += data
        head, ends, body = self._buffer.partition(b"\r\n\r\n")
        if not ends:
            return
        lower = head.lower()
        at = lower.index(b"content-length:") + 15
        if len(body) < int(lower[at:].partition(b"\r\n")[0]):
            return
        self._buffer = b""
        assert self._transport is not None
        self._transport.write(self._heard.answer(self._began, body))


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Heard, str]]:
    """Serve on a free port; yield what is heard, and the base address."""
    heard, loop = Heard(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(heard), "127.0.0.1", 0)
    async with server:
        yield heard, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
