"""Device: the one path that execd dials; the socket is handed over as it is (E2.1)."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.web.problems import PARTS, ProblemError
from upright.web.socket import DeviceSocket

SUBPROTOCOL: Final = "upright.execd.1"
RETRY_AFTER_S: Final = 30.0


class Sockets:
    """The open device sockets, counted by address."""

    def __init__(self) -> None:
        self.open: set[DeviceSocket] = set()

    def check(self, remote: str, *, most: int, most_per_address: int) -> None:
        """Refuse one socket too many.

        Raises:
            ProblemError: 429.
        """
        mine = Counter(socket.remote for socket in self.open)[remote]
        if len(self.open) >= most or mine >= most_per_address:
            detail = "too many device sockets are open"
            raise ProblemError(429, "device.too_many", detail, retry_after_s=RETRY_AFTER_S)

    def abort_all(self) -> None:
        """Cut every socket: the hub ends, and what could be said was said."""
        for socket in self.open:
            socket.abort()


SOCKETS: Final = web.AppKey("sockets", Sockets)


async def serve(request: web.Request) -> web.StreamResponse:
    """Take a device's websocket and serve it until it ends."""
    parts, sockets = request.app[PARTS], request.app[SOCKETS]
    if "Origin" in request.headers:
        detail = "a browser has no business here"
        raise ProblemError(HTTPStatus.FORBIDDEN, "device.origin", detail)
    offered = request.headers.get("Sec-WebSocket-Protocol", "")
    if SUBPROTOCOL not in {name.strip() for name in offered.split(",")}:
        detail = f"this is for execd: a websocket with the subprotocol {SUBPROTOCOL}"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "device.protocol", detail)
    limits = parts.limits
    sockets.check(
        request.remote or "",
        most=limits.max_device_sockets,
        most_per_address=limits.max_device_sockets_per_address,
    )
    response = web.WebSocketResponse(
        protocols=(SUBPROTOCOL,),
        max_msg_size=limits.device_frame_bytes,
        compress=False,
        timeout=1.0,  # for the far end's half of the closing handshake
    )
    await response.prepare(request)
    socket = DeviceSocket(response, request, parts.gone)
    sockets.open.add(socket)
    try:
        await parts.device(socket)
    finally:
        sockets.open.discard(socket)
    return response
