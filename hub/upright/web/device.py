"""Device: the one path that execd dials; the socket is handed over as it is (E2.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from upright.web.described import Described, described
from upright.web.parts import WebLimits
from upright.web.problems import PARTS, ProblemError
from upright.web.socket import DeviceSocket

SUBPROTOCOL: Final = "upright.execd.1"
RETRY_AFTER_S: Final = 30.0


class Sockets:
    """The open device sockets; those whose far end is not known yet are counted by address."""

    def __init__(self) -> None:
        self.open: set[DeviceSocket] = set()
        self._half_open: Counter[str] = Counter()

    def check(self, remote: str, limits: WebLimits) -> None:
        """Refuse one socket too many.

        Raises:
            ProblemError: 429.
        """
        is_over = (
            len(self.open) >= limits.max_device_sockets
            or self._half_open.total() >= limits.max_half_open
            or self._half_open[remote] >= limits.max_half_open_per_address
        )
        if is_over:
            detail = "too many device sockets are open"
            raise ProblemError(429, "device.too_many", detail, retry_after_s=RETRY_AFTER_S)

    @contextmanager
    def held(self, socket: DeviceSocket) -> Iterator[None]:
        """Count a socket as open; as half-open until it is admitted, or to its end."""
        self.open.add(socket)
        self._half_open[socket.remote] += 1
        socket.on_admitted = lambda: self._settle(socket)
        try:
            yield
        finally:
            self.open.discard(socket)
            socket.admitted()

    def _settle(self, socket: DeviceSocket) -> None:
        self._half_open[socket.remote] -= 1
        if not self._half_open[socket.remote]:
            del self._half_open[socket.remote]

    def abort_all(self) -> None:
        """Cut every socket: the hub ends, and what could be said was said."""
        for socket in self.open:
            socket.abort()


SOCKETS: Final = web.AppKey("sockets", Sockets)


@described(Described(statuses=(101,), media="", problems=(400, 421, 429)))
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
    sockets.check(request.remote or "", limits)
    response = web.WebSocketResponse(
        protocols=(SUBPROTOCOL,),
        max_msg_size=limits.device_frame_bytes,
        compress=False,
        timeout=1.0,  # for the far end's half of the closing handshake
    )
    await response.prepare(request)
    socket = DeviceSocket(response, request, parts.gone)
    with sockets.held(socket):
        await parts.device(socket)
    return response
