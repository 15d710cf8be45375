"""Transport: one device's websocket, as the devices shelf sees it; web brings the real one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class GoneError(Exception):
    """The other side is gone; ``code`` is the close code that it sent, if any."""

    def __init__(self, code: int | None = None) -> None:
        super().__init__(f"the link ended (close code {code})")
        self.code = code


class Transport(Protocol):
    """Messages in order; a ``str`` is a text frame, ``bytes`` a binary one."""

    async def receive(self) -> str | bytes:
        """Return the next message.

        Raises:
            GoneError: the socket ended, or a message was over its cap.
        """
        ...

    async def send(self, frame: str | bytes) -> None:
        """Send one message; waits while the other side does not read.

        Raises:
            GoneError: the socket ended.
        """
        ...

    def admitted(self) -> None:
        """Note that the far end has proved who it is; what is not admitted is bounded."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close with a code; harmless when it is closed already. The caller bounds the wait."""
        ...

    def abort(self) -> None:
        """Cut it now, without a close handshake."""
        ...


def is_from_a_browser(header_names: Iterable[str]) -> bool:
    """Say whether a request for the device path must be refused: Origin is a browser's (E2.1)."""
    return any(name.lower() == "origin" for name in header_names)
