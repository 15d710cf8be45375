"""Disk: a small file system of the hub's own, which can be filled up to its last block."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SIZE_MB: Final = 96
BLOCK: Final = b"\0" * 4096
MOUNT_S: Final = 10.0


class Ballast:
    """A file that takes what is left."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def fill(self) -> None:
        """Write until nothing more can be written: large pieces first, then single blocks."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for piece in (BLOCK * 256, BLOCK):
                _write_until_full(handle, piece)
        finally:
            os.close(handle)

    def free(self) -> None:
        """Give it back."""
        self._path.unlink(missing_ok=True)


def _write_until_full(handle: int, piece: bytes) -> None:
    try:
        while os.write(handle, piece) == len(piece):
            pass
    except OSError:
        return  # that is what was wanted


def lacks() -> str:
    """Say why no small disk can be had here; empty: it can."""
    if not sys.platform.startswith("linux"):
        return f"platform: no tmpfs on {sys.platform}"
    return "" if os.geteuid() == 0 else "kernel: only root may mount a tmpfs"


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small disk at *folder* while the context is open.

    Raises:
        OSError: the kernel refuses.
    """
    folder.mkdir(mode=0o700)
    options = f"size={SIZE_MB}m,mode=700"
    _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield
    finally:
        _run("umount", str(folder))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, timeout=MOUNT_S, check=False)
    if done.returncode != 0:
        said = f"kernel: {argv[0]} refuses: {done.stderr.decode(errors='replace').strip()}"
        raise OSError(said)
