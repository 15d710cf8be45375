"""Spill: large payloads as files, named by what is in them; a row names each, or it goes.

A file is on disk before the commit that names it, and is removed after the commit that no longer
does. What a kill leaves between the two is swept at the next start. Every function here blocks.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"[0-9a-f]{64}\Z")


def digest(raw: bytes) -> str:
    """Return the name that these bytes have."""
    return hashlib.sha256(raw).hexdigest()


class Spill:
    """A folder of spilled payloads. Hold ``changing`` from writing a file until its commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changing = asyncio.Lock()

    def path(self, named: str) -> Path:
        """Return where the bytes of this name are.

        Raises:
            ValueError: it is no such name.
        """
        if not _NAME.match(named):
            raise ValueError(named)
        return self.folder / named[:2] / named

    def keep(self, raw: bytes) -> str:
        """Store bytes, whole and on disk, and return their name."""
        named = digest(raw)
        path = self.path(named)
        if path.exists():
            return named
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)  # what a kill left; and no link leads the bytes elsewhere
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        for folder in (path.parent, self.folder):  # the name, too, must be there after a crash
            _sync(folder)
        return named

    def read(self, named: str) -> bytes:
        """Return the bytes of this name.

        Raises:
            FileNotFoundError: they are not here.
            ValueError: what is here has changed.
        """
        raw = self.path(named).read_bytes()
        if digest(raw) != named:
            problem = f"{self.path(named)} holds other bytes than its name says"
            raise ValueError(problem)
        return raw

    def drop(self, names: Collection[str]) -> None:
        """Remove files; one that is gone already is no error."""
        for named in names:
            self.path(named).unlink(missing_ok=True)

    def names(self) -> Iterator[str]:
        """Yield the names of what is here."""
        for path in self.folder.glob("??/*"):
            if _NAME.match(path.name):
                yield path.name

    def sweep(self, named: Collection[str]) -> int:
        """Remove what no row names, and what was half written; return how many."""
        loose = [path for path in self.folder.glob("??/*") if path.name not in named]
        for path in loose:
            path.unlink()
        return len(loose)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
