"""Keep-alive: one HTTP connection that sends requests made beforehand, as cheaply as can be."""

from __future__ import annotations

import asyncio
from time import perf_counter
from urllib.parse import urlsplit

ANSWER_S = 30.0


class KeepAlive(asyncio.Protocol):
    """One connection; one request at a time. Answers must have a Content-Length."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[int] | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Settle the request once its answer is whole."""
        self._buffer += data
        head, ends, body = self._buffer.partition(b"\r\n\r\n")
        if not ends or self._answer is None or self._answer.done():
            return
        lower = head.lower()
        at = lower.index(b"content-length:") + 15
        length = int(lower[at:].partition(b"\r\n")[0])
        if len(body) >= length:
            self._buffer = b""
            self._answer.set_result(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server hung up"))

    def send(self, request: bytes) -> asyncio.Future[int]:
        """Send a request; the future gets the answer's status."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    async def ask(self, request: bytes) -> tuple[int, float]:
        """Send a request; return (status, seconds)."""
        began = perf_counter()
        async with asyncio.timeout(ANSWER_S):
            status = await self.send(request)
        return status, perf_counter() - began

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def connect(url: str) -> KeepAlive:
    """Open a connection."""
    where = urlsplit(url)
    host, port = where.hostname or "127.0.0.1", where.port or 80
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(ANSWER_S):
        _, protocol = await loop.create_connection(KeepAlive, host, port)
    return protocol
