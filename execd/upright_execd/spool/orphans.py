"""Orphans: ends what a dead shim left behind, found by its process, its group and its mark."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from upright_execd.environment import FOLDER_VARIABLE
from upright_execd.shim import kin, records
from upright_execd.spool.folder import Folder


def kill(folder: Path) -> None:
    """Kill the command's group, if its leader is still the very process that was started.

    Then kill every process whose environment names the command: those that left the group, and one
    whose shim died before it could say which process it had started. Blocks.
    """
    with suppress(FileNotFoundError):
        running = dict(records.parse((folder / records.RUNNING).read_bytes()) or [])
        begun, pid = running.get("start_time"), int(running.get("pid", 0))
        if begun and kin.start_time(pid) == begun:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    for pid in _marked(folder):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def end_all(commands: Path) -> int:
    """Have every command end that runs; return how many. For when no daemon leads them."""
    count, opened = 0, commands / "open"
    for path in sorted(opened.iterdir()) if opened.is_dir() else ():
        folder = Folder(path)
        if folder.has_shim():
            folder.cancel()
            count += 1
    return count


def _marked(folder: Path) -> list[int]:
    mark, found = f"{FOLDER_VARIABLE}={folder}".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
