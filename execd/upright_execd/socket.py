"""The socket: one outbound websocket to the hub, as plain frames (E2.1)."""

from __future__ import annotations

import asyncio
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI, WebSocketException
from websockets.typing import Subprotocol

from upright_execd.address import HubAddress
from upright_wire.frames import MAX_PAYLOAD_BYTES, SUBPROTOCOL
from upright_wire.version import __version__

MAX_FRAME_BYTES: Final = MAX_PAYLOAD_BYTES + 4096


class GoneError(Exception):
    """The hub is gone; ``code`` is the close code that it sent, if any."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class _Connection(ClientConnection):
    """Notes when anything was heard: half a message is a sign of life, too (E2.5)."""

    heard_at: float | None = None  # the loop's time

    def data_received(self, data: bytes) -> None:
        self.heard_at = self.loop.time()
        super().data_received(data)


class _Connect(connect):
    """Goes where it was told and nowhere else: a redirect is a failure."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Socket:
    """One open websocket."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def silent_s(self) -> float:
        """Return for how long nothing has been heard, in seconds of the loop."""
        now, heard_at = asyncio.get_running_loop().time(), self._connection.heard_at
        return 0.0 if heard_at is None else now - heard_at

    async def receive(self) -> str | bytes:
        """Return the next frame; cancelling loses none.

        Raises:
            GoneError: the socket ended.
        """
        try:
            return await self._connection.recv()
        except ConnectionClosed as error:
            raise _gone(error) from error

    async def send(self, frame: str | bytes) -> None:
        """Send one frame; waits while the hub does not read.

        Raises:
            GoneError: the socket ended.
        """
        try:
            await self._connection.send(frame)
        except ConnectionClosed as error:
            raise _gone(error) from error

    async def close(self, code: int, *, within_s: float) -> None:
        """Say goodbye, and cut the socket if that takes longer than *within_s*."""
        try:
            async with asyncio.timeout(within_s):
                await self._connection.close(code)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Cut it now, without waiting for anybody."""
        self._connection.transport.abort()


async def dial(address: HubAddress, *, open_s: float) -> Socket:
    """Open the websocket: no compression, no credential in URL or header, no redirect.

    Raises:
        GoneError: it can't be opened; the reason is for people.
    """
    try:
        connection = await _Connect(
            address.url,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            user_agent_header=f"upright-execd/{__version__}",
            open_timeout=open_s,
            ping_interval=None,
            close_timeout=1,
            max_size=MAX_FRAME_BYTES,
            create_connection=_Connection,
            proxy=None if address.url.startswith("ws://") else True,
        )
    except TimeoutError as error:
        sentence = f"{address.host} does not answer"
        raise GoneError(sentence) from error
    except (OSError, InvalidHandshake, InvalidURI, WebSocketException) as error:
        sentence = f"{address.host}: {error}"
        raise GoneError(sentence) from error
    if not isinstance(connection, _Connection) or connection.subprotocol != SUBPROTOCOL:
        connection.transport.abort()
        sentence = f"{address.host} does not speak {SUBPROTOCOL}"
        raise GoneError(sentence)
    return Socket(connection)


def _gone(error: ConnectionClosed) -> GoneError:
    received = error.rcvd
    if received is None:
        return GoneError("the connection broke")
    reason = received.reason or "the hub closed the link"
    return GoneError(f"{reason} ({int(received.code)})", int(received.code))
