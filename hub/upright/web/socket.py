"""Socket: a device's websocket as plain messages; the wire's meaning is not known here."""

from __future__ import annotations

from aiohttp import ClientConnectionResetError, WSMsgType, web


class SocketClosedError(Exception):
    """The other side is gone, or sent what is no message; ``code`` is its close code, if any."""

    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class DeviceSocket:
    """One accepted websocket. A text message is a ``str``, a binary one ``bytes``.

    ``remote`` is the address of the other side, ``host`` the name that it dialled.
    """

    def __init__(self, response: web.WebSocketResponse, request: web.Request) -> None:
        self._response = response
        self._transport = request.transport
        self.remote = request.remote or ""
        self.host = request.host

    async def receive(self) -> str | bytes:
        """Return the next message.

        Raises:
            SocketClosedError: the socket ended, or a message was over the cap.
        """
        message = await self._response.receive()
        match message.type:
            case WSMsgType.TEXT | WSMsgType.BINARY:
                data: str | bytes = message.data
                return data
            case _:
                reason = f"websocket ended: {message.type.name.lower()}"
                raise SocketClosedError(self._response.close_code, reason)

    async def send(self, message: str | bytes) -> None:
        """Send one message; waits while the other side does not read.

        Raises:
            SocketClosedError: the socket ended.
        """
        try:
            if isinstance(message, str):
                await self._response.send_str(message)
            else:
                await self._response.send_bytes(message)
        except (ClientConnectionResetError, ConnectionResetError) as error:
            raise SocketClosedError(self._response.close_code, str(error)) from error

    async def close(self, code: int, reason: str = "") -> None:
        """Close in order, with a code of E2.4; harmless when it is closed already."""
        await self._response.close(code=code, message=reason.encode()[:123])

    def abort(self) -> None:
        """Cut it now, without a close handshake."""
        if self._transport is not None:
            self._transport.abort()
