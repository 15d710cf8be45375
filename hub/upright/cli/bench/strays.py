"""Strays: processes that have to do with a folder, wherever they were started; only Linux tells."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def strays(folder: Path) -> dict[int, str]:
    """Find processes with *folder* among their words, or at work in it: pid and first words."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        pid = int(place.name)
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            at = str((place / "cwd").readlink())
            if pid != os.getpid() and any(str(folder) in text for text in (at, *words)):
                found[pid] = " ".join(words[:4])
    return found


def end(folder: Path) -> list[str]:
    """Kill them; return what they were. The folder is ours alone, so they are ours, too."""
    found = strays(folder)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"process {pid} ({words})" for pid, words in found.items()]
