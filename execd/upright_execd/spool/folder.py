"""Folder: the files of one command. All of it blocks: call it in a thread."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.paths import PRIVATE_FILE, PRIVATE_FOLDER, sync_folder, write_private
from upright_execd.shim import kin, records
from upright_execd.shim.records import Pairs
from upright_execd.spool.accepted import (
    Accepted,
    Receipt,
    decode_accepted,
    decode_receipt,
    encode,
)

RECEIPT: Final = "receipt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a shim left so far, read in one go: the latest first, so that no step seems skipped."""

    exit: Pairs | None
    runs: bool
    pid: int | None

    @property
    def is_begun(self) -> bool:
        """Whether the shim went as far as the gate: the program may have run."""
        return self.pid is not None


class Folder:
    """One command's folder, which may not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # -------------------------------------------------------------- before the start
    def make(self) -> None:
        """Make the folder; it means nothing until it holds a spec or a receipt."""
        self.path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)

    def write_stdin(self, offset: int, data: bytes) -> None:
        """Put input at its place."""
        self.make()
        handle = os.open(self.path / records.STDIN, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.seek(offset)
            file.write(data)

    @contextmanager
    def accepting(self, accepted: Accepted) -> Iterator[int]:
        """Accept the command: when this is entered, it survives a power cut.

        Yields the handle of the held lock: a shim that inherits it holds it from its birth on, so
        that whoever gets the lock later knows that no shim lives.
        """
        self.make()
        with suppress(FileExistsError):
            os.mkfifo(self.path / records.CONTROL, PRIVATE_FILE)
        lock = os.open(self.path / records.LOCK, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if accepted.spec.stdin is not None:
                self._sync(records.STDIN)
            write_private(self.path / records.SPEC, encode(accepted))
            sync_folder(self.path.parent)
            yield lock
        finally:
            os.close(lock)

    # -------------------------------------------------------------- what is there
    def accepted(self) -> Accepted | None:
        """Return what was accepted; None when nothing was."""
        path = self.path / records.SPEC
        content = _content(path)
        return None if content is None else decode_accepted(content, str(path))

    def receipt(self) -> Receipt | None:
        """Return the receipt, if there is one."""
        path = self.path / RECEIPT
        content = _content(path)
        return None if content is None else decode_receipt(content, str(path))

    def marks(self) -> Marks:
        """Return how far the shim has come."""
        ended = _content(self.path / records.EXIT)
        runs = (self.path / records.RUNNING).exists()
        started = dict(records.parse(_content(self.path / records.STARTED) or b"") or [])
        return Marks(
            exit=None if ended is None else records.parse(ended),
            runs=runs,
            pid=int(started["pid"]) if "pid" in started else None,
        )

    def has_shim(self) -> bool:
        """Say whether a shim lives, or is being born."""
        try:
            lock = os.open(self.path / records.LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def size_bytes(self) -> int:
        """Return how much all files hold."""
        total = 0
        with suppress(FileNotFoundError):
            for entry in os.scandir(self.path):
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_size
        return total

    # -------------------------------------------------------------- the end
    def cancel(self) -> None:
        """Ask the shim for the end, or keep one that is being born from starting anything."""
        write_private(self.path / records.CANCEL, b"")
        with suppress(OSError):  # no shim listens yet: it looks for the file before it starts
            control = os.open(self.path / records.CONTROL, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(control, b"c")
            finally:
                os.close(control)

    def kill_orphans(self) -> None:
        """End what a dead shim left behind, if it is still the very process that it started."""
        started = dict(records.parse(_content(self.path / records.STARTED) or b"") or [])
        begun = started.get("start_time")
        if begun and kin.start_time(int(started["pid"])) == begun:
            with suppress(ProcessLookupError):
                os.killpg(int(started["pid"]), signal.SIGKILL)

    def write_receipt(self, receipt: Receipt) -> None:
        """Put the outcome on record, synced."""
        self.make()
        write_private(self.path / RECEIPT, encode(receipt))
        sync_folder(self.path.parent)

    def strip(self) -> None:
        """Drop everything but the receipt."""
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != RECEIPT:
                entry.unlink()

    def delete(self) -> None:
        """Drop everything."""
        shutil.rmtree(self.path)

    def _sync(self, name: str) -> None:
        with (self.path / name).open("ab") as file:
            os.fsync(file.fileno())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
