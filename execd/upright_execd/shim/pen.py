"""Pen: a control group into which a command's processes are put to be killed in one stroke.

It is made when it comes to killing, and only where this process may make one below its own group
(a service with delegation, or root): so no command pays for it that ends by itself. Linux only.
"""

from __future__ import annotations

import os
import select

GONE_MS = 200
ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where the unified hierarchy is mounted; the second beside older ones."""


class Pen:
    """One group, ``""`` where none can be made; what is put in it can't fork its way out."""

    def __init__(self) -> None:
        self._folder = _made()

    def take(self, pid: int) -> None:
        """Put a process in."""
        if self._folder:
            _put(f"{self._folder}/cgroup.procs", str(pid))

    def kill(self) -> None:
        """Kill all that are in it, those too that are being forked, and take the group away."""
        if not self._folder:
            return
        _put(f"{self._folder}/cgroup.kill", "1")
        _wait_for_none(f"{self._folder}/cgroup.events")
        try:
            os.rmdir(self._folder)
        except OSError:
            pass  # somebody can't be killed: the next round has the same group


def _made() -> str:
    own = _own()
    for root in ROOTS if own else ():
        folder = f"{root}{own.rstrip('/')}/upright-{os.getpid()}"
        if not os.path.exists(f"{root}/cgroup.controllers"):
            continue
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError:
            return ""
        return folder if os.path.exists(f"{folder}/cgroup.kill") else _unmade(folder)
    return ""


def _unmade(folder: str) -> str:
    os.rmdir(folder)  # a kernel before 5.14
    return ""


def _own() -> str:
    """Return this process's group in the unified hierarchy; empty when there is none."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::/")), "")


def _wait_for_none(events: str) -> None:
    """Wait until nobody is left, but not for long."""
    handle = os.open(events, os.O_RDONLY)
    poll = select.poll()
    poll.register(handle, select.POLLPRI)
    try:
        while b"populated 0" not in os.pread(handle, 4096, 0):
            if not poll.poll(GONE_MS):
                return
    finally:
        os.close(handle)


def _put(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        pass  # it ended by itself, or may not be moved: then it is killed one by one
