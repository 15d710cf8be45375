"""Disk: a small file system of the hub's own, which can be filled up to its last block."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

SIZE_MB: Final = 96
BLOCK: Final = b"\0" * 4096
MOUNT_S: Final = 10.0


class NoDiskError(Exception):
    """No small disk can be had here; the sentence says why."""


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


@asynccontextmanager
async def small_disk(folder: Path) -> AsyncIterator[None]:
    """Mount a small disk at *folder* while the context is open; nobody may use it at its end.

    Raises:
        NoDiskError: the kernel refuses.
    """
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    options = f"size={SIZE_MB}m,mode=700"
    await _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    try:
        yield
    finally:
        await _run("umount", str(folder))


async def _run(*argv: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(MOUNT_S):
        _, said = await process.communicate()
    if process.returncode != 0:
        reason = f"kernel: {argv[0]} refuses: {said.decode(errors='replace').strip()}"
        raise NoDiskError(reason)
