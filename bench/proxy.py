"""Proxy: a TCP link that can be cut after so many bytes, and stays cut for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

CHUNK: Final = 64 * 1024
CONNECT_S: Final = 5.0


class Proxy:
    """Passes bytes on between its port and *target*; ``cuts`` counts how often it was cut."""

    def __init__(self) -> None:
        self.port = self.target = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._left: int | None = None
        self._for_s = 0.0
        self._down = False
        self.cuts = 0
        self.was_cut = asyncio.Event()

    def cut_after(self, count: int, for_s: float) -> None:
        """Cut the link once so many more bytes have come in, for so many seconds."""
        self._left, self._for_s = count, for_s

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        if self._down:
            writer.transport.abort()
            return
        async with asyncio.timeout(CONNECT_S):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        pair = {writer, far_writer}
        self._open |= pair
        try:
            with suppress(ConnectionError):
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass(reader, far_writer, inward=True), name="in")
                    group.create_task(self._pass(far_reader, writer, inward=False), name="out")
        except* ConnectionError:
            pass  # cut, by us or by an end
        finally:
            self._open -= pair
            for one in pair:
                one.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, inward: bool
    ) -> None:
        while piece := await reader.read(CHUNK):
            if inward and self._left is not None:
                self._left -= len(piece)
                if self._left <= 0:
                    self._left = None
                    self._cut()
                    raise ConnectionAbortedError
            writer.write(piece)
            await writer.drain()
        raise ConnectionResetError

    def _cut(self) -> None:
        self._down = True
        self.cuts += 1
        self.was_cut.set()
        for writer in self._open:
            writer.transport.abort()
        asyncio.get_running_loop().call_later(self._for_s, self._mend)

    def _mend(self) -> None:
        self._down = False


@asynccontextmanager
async def proxied() -> AsyncIterator[Proxy]:
    """Serve a proxy, whose target is still to be named."""
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy
    finally:
        server.close()
