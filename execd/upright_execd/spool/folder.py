"""Folder: the files of one command. All of it blocks: call it in a thread."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.disk import Disk
from upright_execd.paths import PRIVATE_FILE, PRIVATE_FOLDER, sync_folder, write_private
from upright_execd.shim import records
from upright_execd.shim.records import Pairs
from upright_execd.spool.accepted import (
    Accepted,
    Receipt,
    decode_accepted,
    decode_receipt,
    encode,
)

RECEIPT: Final = "receipt"
_ANEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a shim left so far, read in one go: the latest first, so that no step seems skipped."""

    exit: Pairs | None
    pid: int | None
    is_begun: bool
    """Whether the shim went so far that the program may have run."""

    @property
    def runs(self) -> bool:
        """Whether the program runs, or did."""
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
    def locked(self) -> Iterator[int]:
        """Hold the lock of the command; yield its handle.

        A shim that inherits the handle holds the lock from its birth on, so that whoever gets the
        lock later knows that no shim lives.
        """
        lock = os.open(self.path / records.LOCK, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield lock
        finally:
            os.close(lock)

    def accept(self, accepted: Accepted, disk: Disk) -> None:
        """Accept the command: when this returns, it survives a power cut."""
        self.make()
        with suppress(FileExistsError):
            os.mkfifo(self.path / records.CONTROL, PRIVATE_FILE)
        handle = os.open(self.path / records.SPEC, _ANEW, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(encode(accepted))
        given: tuple[Path, ...] = ()
        if accepted.spec.stdin is not None:
            given = (self.path / records.STDIN,)
            given[0].touch(PRIVATE_FILE)  # of an input without a byte nothing came
        disk.sync((*given, self.path / records.SPEC, self.path, self.path.parent))

    # -------------------------------------------------------------- what is there
    def accepted(self) -> Accepted | None:
        """Return what was accepted; None when nothing was, or when it never got to the disk."""
        path = self.path / records.SPEC
        content = _content(path) or b""
        return decode_accepted(content, str(path)) if content.endswith(b"\n") else None

    def receipt(self) -> Receipt | None:
        """Return the receipt, if there is one."""
        path = self.path / RECEIPT
        content = _content(path)
        return None if content is None else decode_receipt(content, str(path))

    def marks(self) -> Marks:
        """Return how far the shim has come."""
        ended = _content(self.path / records.EXIT)
        running = dict(records.parse(_content(self.path / records.RUNNING) or b"") or [])
        return Marks(
            exit=None if ended is None else records.parse(ended),
            pid=int(running["pid"]) if "pid" in running else None,
            is_begun=(self.path / records.STARTED).exists(),
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

    def write_receipt(self, receipt: Receipt, *, waits: bool = True) -> None:
        """Put the outcome on record; by default, wait until it is on the disk."""
        self.make()
        if waits:
            write_private(self.path / RECEIPT, encode(receipt))
            sync_folder(self.path.parent)
            return
        temporary = self.path / f".{RECEIPT}"
        handle = os.open(temporary, _ANEW, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(encode(receipt))
        temporary.replace(self.path / RECEIPT)

    def strip(self) -> None:
        """Drop everything but the receipt."""
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != RECEIPT:
                entry.unlink()


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
