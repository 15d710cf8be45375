"""Disk: waits until files and folders are on it, several at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

AT_ONCE: Final = 16


class Disk:
    """Waits for several things together: a disk that is asked so takes about as long as for one."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="disk")

    def sync(self, paths: Sequence[Path]) -> None:
        """Return once all of *paths*, files or folders, survive a power cut. Blocks.

        Raises:
            OSError: the disk refuses one of them.
        """
        others: list[Future[None]] = [self._threads.submit(_sync, path) for path in paths[1:]]
        try:
            for path in paths[:1]:
                _sync(path)
        finally:
            for other in others:
                other.exception()  # waits; none is left behind whose folder may go
        for other in others:
            other.result()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
