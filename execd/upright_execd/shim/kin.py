"""Kin: the processes that descend from a command, found again wherever they went."""

from __future__ import annotations

import os
import signal

from upright_execd.shim.pen import Pen

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_MAX_ROUNDS = 20
_MAX_LOOKS = 3
_MAX_NAMED = 20


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own (Linux; elsewhere a no-op)."""
    if not os.path.isdir("/proc/self"):
        return
    import ctypes  # noqa: PLC0415  # 3 ms, and only here

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def is_parent_of_last_resort() -> bool:
    """Say whether orphans come to this process: then one without children has no descendants."""
    return os.path.isdir("/proc/self")


def start_time(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks; empty when that isn't known.

    With the pid it names a process for good: pids come back, pairs don't within one boot.
    """
    fields = _stat(pid)
    return fields[19] if fields else ""


def descendants() -> list[int]:
    """Return the pids of all living descendants of this process; zombies are left out.

    Who goes while one looks may have handed on its children unseen, so one looks again then.
    """
    found: list[int] = []
    for _ in range(_MAX_LOOKS):
        found, is_torn = _look()
        if not is_torn:
            break
    return found


def any_left(group: int) -> bool:
    """Say whether anybody of the command lives, for a process that has children or can't know.

    Where orphans come here, a child is the answer: a look through /proc takes its time, and misses
    who changes parents meanwhile. Elsewhere only the command's group can be asked.
    """
    if is_parent_of_last_resort():
        return True
    try:
        os.kill(-group, 0)
    except OSError:
        return False
    return True


def send(group: int, number: int) -> None:
    """Signal the command's group and every descendant that left it."""
    members = descendants()
    _kill(-group, number)
    for pid in members:
        if _group(pid) != group:
            _kill(pid, number)


def kill_all(group: int) -> None:
    """Kill the group and all descendants: they are frozen first, so that none forks on.

    Where a control group can be made, who is forked meanwhile dies with it.
    """
    pen, frozen = Pen(), set[int]()
    for _ in range(_MAX_ROUNDS):
        fresh = set(descendants()) - frozen
        if not fresh:
            break
        for pid in fresh:
            _kill(pid, signal.SIGSTOP)
            pen.take(pid)
        frozen |= fresh
    pen.kill()
    _kill(-group, signal.SIGKILL)
    for pid in frozen:
        _kill(pid, signal.SIGKILL)


def named(pids: list[int]) -> list[str]:
    """Return ``pid name`` for the first few; a name is told as it stands in /proc, escaped."""
    said = []
    for pid in pids[:_MAX_NAMED]:
        try:
            with open(f"/proc/{pid}/comm", "rb") as file:
                comm = file.read(64).strip()
        except OSError:
            continue
        said.append(f"{pid} {ascii(comm.decode('utf-8', 'replace'))[1:-1]}")
    return said


def _look() -> tuple[list[int], bool]:
    """Return the living descendants, and whether somebody went meanwhile."""
    below: dict[int, list[int]] = {}
    dead: set[int] = set()
    is_torn = False
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdecimal():
            continue
        fields = _stat(int(name))
        if not fields:
            is_torn = True
            continue
        below.setdefault(int(fields[1]), []).append(int(name))
        if fields[0] in "ZX":
            dead.add(int(name))
    found, front = [], [os.getpid()]
    while front:
        front = [pid for parent in front for pid in below.get(parent, ())]
        found += [pid for pid in front if pid not in dead]
    return found, is_torn


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third (state) on; none when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return []
    return text[text.rindex(b")") + 2 :].decode("ascii").split()


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # it ended by itself, or it is no longer ours to signal: the next look tells
