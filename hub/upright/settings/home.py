"""Home: the hub's own files, each readable by its owner alone."""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright.api import Secret

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a running hub listens, as it said itself."""

    url: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Names in the hub's state folder."""

    folder: Path

    @property
    def token(self) -> Path:
        """The API's bearer token: whoever can read it is the operator."""
        return self.folder / "api.token"

    @property
    def address(self) -> Path:
        """Written while the hub serves."""
        return self.folder / "hub.json"

    @property
    def hub_key(self) -> Path:
        """The hub's private key; devices pin its public half."""
        return self.folder / "hub.key"

    @property
    def spill(self) -> Path:
        """Large payloads, each a file that is named by what is in it."""
        return self.folder / "spill"

    def read_token(self) -> Secret | None:
        """Return the API token; None when there is none yet."""
        try:
            return Secret(self.token.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            return None

    def make_token(self) -> Secret:
        """Return the API token; make it when there is none. This is the one place that does."""
        if (found := self.read_token()) is not None:
            return found
        make_private_folder(self.folder)
        token = secrets.token_urlsafe(32)
        write_private(self.token, token.encode())
        return Secret(token)

    def token_is_private(self) -> bool:
        """Say whether nobody else may read the token."""
        return sys.platform == "win32" or not self.token.stat().st_mode & 0o077

    def write_address(self, address: Address) -> None:
        """Say where the hub listens."""
        write_private(self.address, json.dumps({"url": address.url, "pid": address.pid}).encode())

    def read_address(self) -> Address | None:
        """Return where a hub said that it listens; it may have died since."""
        try:
            said = json.loads(self.address.read_text(encoding="utf-8"))
            return Address(url=str(said["url"]), pid=int(said["pid"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def forget_address(self) -> None:
        """Take the address away: the hub ends."""
        self.address.unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Make *folder*; it is the owner's alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)


def write_private(path: Path, content: bytes) -> None:
    """Write *path* whole or not at all; nobody else can read it at any moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
