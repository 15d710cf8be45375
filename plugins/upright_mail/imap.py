"""IMAP: what we use of imapclient, with types; it has few of its own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Protocol

Criteria = str | Sequence[str | date]


class Reading(Protocol):
    """An open connection that reads. Every method blocks, and raises IMAPClientError or OSError."""

    normalise_times: bool

    def fetch(self, messages: Sequence[int], data: Sequence[str]) -> Mapping[int, Any]:
        """Return what is asked of each mail that is there."""
        ...

    def has_capability(self, capability: str) -> bool:
        """Tell whether the server can do something."""
        ...

    def idle(self) -> None:
        """Have the server tell what happens."""
        ...

    def idle_check(self, timeout: float | None = None) -> Sequence[object]:
        """Wait for what it tells."""
        ...

    def idle_done(self) -> object:
        """Have it stop telling."""
        ...

    def login(self, username: str, password: str) -> object:
        """Sign in."""
        ...

    def logout(self) -> object:
        """Sign out."""
        ...

    def noop(self) -> object:
        """Do nothing, and have it answered."""
        ...

    def search(self, criteria: Criteria = "ALL") -> Sequence[int]:
        """Return the numbers of the mails that match."""
        ...

    def select_folder(self, folder: str, *, readonly: bool = False) -> Mapping[bytes, Any]:
        """Open a folder."""
        ...

    def shutdown(self) -> None:
        """Close the connection at once."""
        ...

    def socket(self) -> socket.socket:
        """Return the socket."""
        ...

    def starttls(self, ssl_context: ssl.SSLContext | None = None) -> object:
        """Make the connection safe."""
        ...


class Imap(Reading, Protocol):
    """One that writes, too."""

    def append(self, folder: str, msg: bytes, flags: Sequence[bytes]) -> bytes:
        """Put a mail into a folder."""
        ...

    def create_folder(self, folder: str) -> bytes:
        """Make a folder."""
        ...

    def delete_messages(self, messages: Sequence[int]) -> object:
        """Mark mails as deleted."""
        ...

    def expunge(self, messages: Sequence[int] | None = None) -> object:
        """Remove what is marked as deleted."""
        ...

    def get_flags(self, messages: Sequence[int]) -> Mapping[int, Sequence[bytes]]:
        """Return the flags of mails."""
        ...

    def remove_flags(self, messages: Sequence[int], flags: Sequence[bytes]) -> object:
        """Take flags away."""
        ...
