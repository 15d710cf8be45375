"""Disk: how much room the database's disk has; with too little, nothing new is taken in.

SQLite would fail in the middle of whatever is under way. So intake refuses before, and says so;
nothing new is begun; what runs ends with the room that is left.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from upright.engine.ports import Clock
from upright.store.errors import DiskFullError

log = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """Return how much room there is for us where *folder* is. It blocks."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskParts:
    """``least_bytes``: below it the disk is full. ``filling`` is called when that begins."""

    folder: Path
    least_bytes: int
    every_s: float
    clock: Clock
    filling: Callable[[], None]
    free: Callable[[Path], int] = free_bytes


class Disk:
    """Looks at the disk now and again; what was seen last holds until the next look."""

    def __init__(self, parts: DiskParts) -> None:
        self._parts = parts
        self.free_bytes = -1  # nobody has looked yet

    @property
    def full(self) -> bool:
        """Whether there was too little room at the last look."""
        return 0 <= self.free_bytes < self._parts.least_bytes

    def require_room(self) -> None:
        """Refuse what would need room.

        Raises:
            DiskFullError: there was too little at the last look.
        """
        if self.full:
            raise DiskFullError(str(self._parts.folder), self.free_bytes)

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await self.look()
            await self._parts.clock.sleep(self._parts.every_s)

    async def look(self) -> None:
        """Look once; tell when it begins to be full, and when it has room again."""
        was_full = self.full
        self.free_bytes = await asyncio.to_thread(self._parts.free, self._parts.folder)
        if self.full and not was_full:
            log.error("disk.full", extra={"free_bytes": self.free_bytes})
            self._parts.filling()
        elif was_full and not self.full:
            log.info("disk.has_room", extra={"free_bytes": self.free_bytes})
