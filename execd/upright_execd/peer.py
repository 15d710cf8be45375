"""Peer: the owner's private socket: where it lies, and that only the same user is heard on it."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from upright_execd.environment import COMMAND_VARIABLE
from upright_execd.paths import PRIVATE_FILE

_MAX_PATH_BYTES: Final = 100  # sun_path has 104 or 108
_MAX_ANCESTORS: Final = 256
_MARK: Final = f"{COMMAND_VARIABLE}=".encode("ascii")
_XUCRED: Final = (0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED, size of a struct xucred


def listen(path: Path) -> socket.socket:
    """Return a listening socket in place of what was there; non-blocking, in a folder of 0700."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as name:
            server.bind(name)
        path.chmod(PRIVATE_FILE)
    except BaseException:
        server.close()
        raise
    server.listen(8)
    server.settimeout(0)
    return server


def connect(path: Path, timeout_s: float) -> socket.socket:
    """Return a connection to it. Blocks.

    Raises:
        OSError: nobody listens there.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout_s)
    try:
        with _short(path) as name:
            client.connect(name)
    except BaseException:
        client.close()
        raise
    return client


def is_same_user(connection: socket.socket) -> bool:
    """Say whether the other end is a process of this user, by the kernel's word."""
    if sys.platform == "linux":
        _, user, _ = _credentials(connection)
    else:
        level, option, size = _XUCRED
        user = struct.unpack_from("=II", connection.getsockopt(level, option, size))[1]
    return int(user) == os.getuid()


def _environment_of(pid: int) -> bytes:
    """Return a process's environment; nothing of one that is not ours to look at.

    A shim always is: it has this user, and lives in the daemon's own namespaces. What lies outside
    them (the parents of a container) is not, and what hides itself still has its shim above it.
    """
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def is_from_a_command(connection: socket.socket, inherited: frozenset[bytes]) -> bool:
    """Say whether the other end descends from a command: that must not answer for its owner.

    A shim is the parent of last resort of all its descendants, and its environment, which bears a
    mark, can't be changed by them. *inherited* are the marks of this daemon itself, which may run
    in a command: its owner runs in that, too. Where there is no /proc, nobody is found.
    """
    if sys.platform != "linux":
        return False
    pid, _, _ = _credentials(connection)
    marks = marks_above(pid)
    return marks is None or bool(marks - inherited)


def marks_above(pid: int) -> frozenset[bytes] | None:
    """Return the marks of commands and shims in a process's environment and its ancestors'.

    None: it is gone already, or its ancestors have no end; no owner at a terminal is that.
    """
    found: set[bytes] = set()
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return frozenset(found)
        try:
            environment = _environment_of(pid)
            status = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        found |= {word for word in environment.split(b"\0") if word.startswith(_MARK)}
        pid = int(status[status.rindex(b")") + 2 :].split()[1])
    return None


def _credentials(connection: socket.socket) -> tuple[int, int, int]:
    """Return pid, user and group of the other end, as the kernel knows them (Linux)."""
    content = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, group = struct.unpack("3i", content)
    return pid, user, group


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a name for *path* that fits into a socket address: deep folders are no fault."""
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)
