"""Guard: one process a database file, others are refused by the first one's process id."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from upright.store.errors import StoreInUseError


class Guard:
    """Holds ``<path>.lock``, an advisory lock that the kernel drops when its process dies.

    The lock file stays behind, empty: removing it would let two processes hold one each.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock of the database *path*, which need not exist; its folder must.

        Raises:
            StoreInUseError: another process, or another guard of this one, holds it.
        """
        name = path.with_name(f"{path.name}.lock")
        self._fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid(self._fd)
            os.close(self._fd)
            raise StoreInUseError(str(path), pid) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _pid(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None
