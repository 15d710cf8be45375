"""Audit: an append-only log of what was asked, decided and done; each line seals the one before."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from upright_execd.clock import Clock
from upright_execd.paths import PRIVATE_FILE

START: Final = "0" * 64


class Audit:
    """Writes the log, from any thread; a verb may write to it beside a running daemon."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._writing = threading.Lock()
        self._seal, self._size = START, -1  # of the log as it was left

    def write(self, event: str, **facts: object) -> None:
        """Append one event; it is on its way to the disk when this returns. Blocks.

        Raises:
            OSError: the disk refuses it; then nothing that hangs on it may go on.
        """
        with self._writing:
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            with os.fdopen(handle, "ab", buffering=0) as file:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.fstat(handle).st_size != self._size:  # somebody else wrote, or it is new
                    _end_line(self._path)
                    self._seal = _last_seal(self._path)
                body = {"at": self._clock.now().isoformat(), "event": event, **facts}
                self._seal, line = _sealed(body, self._seal)
                file.write(line)
                self._size = os.fstat(handle).st_size


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines as they stand there, oldest first; one that can't be read is told as such."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, start=1):
        try:
            yield dict(json.loads(line))
        except (ValueError, TypeError):
            yield {"event": "line.broken", "number": number}


def first_break(path: Path) -> int | None:
    """Return the number (from 1) of the first line that doesn't fit the one before, or None."""
    seal = START
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return None
    for number, line in enumerate(lines, start=1):
        try:
            body = dict(json.loads(line))
            claimed = body.pop("seal")
        except (ValueError, KeyError, TypeError):
            return number
        seal, _ = _sealed(body, seal)
        if claimed != seal:
            return number
    return None


def _sealed(body: dict[str, object], before: str) -> tuple[str, bytes]:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    seal = hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
    return seal, json.dumps({**body, "seal": seal}, separators=(",", ":")).encode() + b"\n"


def _end_line(path: Path) -> None:
    """Put a line end behind a line that was torn, so that the next one stands by itself."""
    if path.exists() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")


def _last_seal(path: Path) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return START
    last = content.splitlines()[-1:] or [b""]
    try:
        return str(json.loads(last[0])["seal"])
    except (ValueError, KeyError, TypeError):
        return START  # torn by a power cut, or empty: the new chain shows where
