"""Paths: where the daemon keeps what; every file and folder is the owner's alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Two folders, ``config`` and ``state``; everything else lies in them under a fixed name."""

    config: Path
    state: Path

    @property
    def settings(self) -> Path:
        """The owner's settings."""
        return self.config / "execd.toml"

    @property
    def workspaces(self) -> Path:
        """The listed workspaces, written by ``execd workspace``."""
        return self.config / "workspaces.json"

    @property
    def rules(self) -> Path:
        """What the owner lets run unasked, written by ``execd rules`` and ``execd consent``."""
        return self.config / "rules.json"

    @property
    def secrets(self) -> Path:
        """The names of the owner's secrets, and the values of those that no keyring has."""
        return self.config / "secrets.json"

    @property
    def pairing(self) -> Path:
        """The hub that this machine is paired with."""
        return self.config / "hub.json"

    @property
    def commands(self) -> Path:
        """One folder per command."""
        return self.state / "commands"

    @property
    def lock(self) -> Path:
        """Held by the one daemon of this state folder; says which."""
        return self.state / "daemon.lock"

    @property
    def socket(self) -> Path:
        """Where the running daemon answers its owner."""
        return self.state / "owner.sock"

    @property
    def bell(self) -> Path:
        """A FIFO on which shims ring when a command has something new."""
        return self.state / "bell"

    @property
    def audit(self) -> Path:
        """The hash-chained log."""
        return self.state / "audit.jsonl"


def paths_in(home: Path | None) -> Paths:
    """Return the paths below *home*, or, without one, where the platform keeps such things."""
    if home is not None:
        return Paths(config=home, state=home / "state")
    folders = platformdirs.PlatformDirs("upright", appauthor=False)
    return Paths(config=folders.user_config_path, state=folders.user_state_path / "execd")


def own_hub() -> Path:
    """Return where a hub of the same user keeps its token and its key, if there is one."""
    return platformdirs.PlatformDirs("upright", appauthor=False).user_data_path


def make_private(folder: Path) -> None:
    """Make *folder* and what lies above it; it is the owner's alone, also when it was there."""
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
    if folder.stat().st_mode & 0o077:
        folder.chmod(PRIVATE_FOLDER)


def write_private(path: Path, content: bytes) -> None:
    """Write *path* whole, or leave what was there: the new content is synced, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in *folder* survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
