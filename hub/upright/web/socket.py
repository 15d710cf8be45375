"""Socket: a device's websocket as plain messages; the wire's meaning is not known here."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import ClientConnectionResetError, WSMsgType, web

Gone = Callable[[int | None], Exception]
"""Makes the error that says: the other side is gone, with this close code or none."""

MAX_REASON_BYTES = 123  # RFC 6455, 5.5: a control frame holds 125 bytes, 2 are the code


class DeviceSocket:
    """One accepted websocket, as ``devices.transport.Transport`` wants it.

    A text message is a ``str``, a binary one ``bytes``. ``remote`` is the address of the other
    side, ``host`` the name that it dialled. What :meth:`receive` and :meth:`send` raise when the
    socket ended, or a message was over the cap, is made by *gone*.
    """

    __slots__ = (
        "_gone",
        "_response",
        "_transport",
        "host",
        "on_admitted",
        "remote",
    )

    def __init__(self, response: web.WebSocketResponse, request: web.Request, gone: Gone) -> None:
        self._response = response
        self._transport = request.transport
        self._gone = gone
        self.remote = request.remote or ""
        self.host = request.host
        self.on_admitted: Callable[[], None] | None = None

    def admitted(self) -> None:
        """Note that the far end has proved who it is: it is not half-open any more."""
        told, self.on_admitted = self.on_admitted, None
        if told is not None:
            told()

    async def receive(self) -> str | bytes:
        """Return the next message."""
        message = await self._response.receive()
        if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
            raise self._gone(self._response.close_code)
        data: str | bytes = message.data
        return data

    async def send(self, frame: str | bytes) -> None:
        """Send one message; waits while the other side does not read."""
        try:
            if isinstance(frame, str):
                await self._response.send_str(frame)
            else:
                await self._response.send_bytes(frame)
        except (ClientConnectionResetError, ConnectionResetError) as error:
            raise self._gone(self._response.close_code) from error

    async def close(self, code: int, reason: str) -> None:
        """Close in order, with a code of E2.4; harmless when it is closed already."""
        await self._response.close(code=code, message=reason.encode()[:MAX_REASON_BYTES])

    def abort(self) -> None:
        """Cut it now, without a close handshake."""
        if self._transport is not None:
            self._transport.abort()
