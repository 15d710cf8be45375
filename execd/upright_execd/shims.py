"""Shims: the daemon's side of the nursery, from which commands get their shims without a wait."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Final

from upright_execd.environment import COMMAND_VARIABLE
from upright_execd.shim import nursery, records

_ROOT: Final = str(Path(__file__).parents[1])
_HEAD: Final = f"import sys, time; sys.path.insert(0, {_ROOT!r}); from upright_execd.shim"
_NURSERY: Final = f"{_HEAD}.nursery import main; main(time.monotonic)"
_COLD: Final = f"{_HEAD}.cold import run; run(time.monotonic)"
_PYTHON: Final = (sys.executable, "-I", "-S", "-E", "-c")
_BUFFER_BYTES: Final = 4 * nursery.MAX_ORDER_BYTES

Handles = tuple[int, ...]


class Shims:
    """Starts shims; every call blocks, and may come from any thread.

    A shim's own environment is a mark and nothing else: the command's reaches only the command, and
    the mark tells every descendant of a command (see ``peer``). Without ``site`` and in isolated
    mode, nothing of the user's reaches the shim's interpreter. Where there is no nursery (a machine
    without such sockets, a nursery that died, an order too long for it) a shim is started cold.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None
        self._is_over = False
        self._nurseries: set[int] = set()
        self._cold: set[int] = set()

    def open(self) -> None:
        """Start the nursery, if there is none; none any more once it was closed."""
        if not hasattr(socket, "SOCK_SEQPACKET") or sys.platform != "linux":
            return
        with self._lock:
            if self._orders is None and not self._is_over:
                self._open()

    def close(self) -> None:
        """Let the nursery end, for good; shims that have a command go on.

        A thread may still be at ``open`` or ``start`` then: a cancelled task doesn't wait for it.
        """
        with self._lock:
            self._is_over = True
            self._close()

    def start(self, message: bytes, lock: int, cwd: int, folder: Path) -> None:
        """Give an order to a shim; the caller's own handles stay open.

        Raises:
            OSError: no process can be made; then no shim has the order.
        """
        if not self._hand_over(message, (lock, cwd)):
            pid = _start_cold(message, lock, cwd, folder)
            with self._lock:
                self._cold.add(pid)
        self.open()

    def reap(self) -> bool:
        """Collect what has ended; say whether a cold shim is still there."""
        with self._lock:
            for ours in (self._cold, self._nurseries):
                ours -= {pid for pid in ours if os.waitpid(pid, os.WNOHANG)[0]}
            if not self._nurseries:
                self._close()
            return bool(self._cold)

    def _hand_over(self, message: bytes, handles: Handles) -> bool:
        if len(message) > nursery.MAX_ORDER_BYTES:
            return False
        with self._lock:
            if self._orders is None:
                return False
            beside = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))
            try:
                self._orders.sendmsg([message], [beside])
            except OSError:
                self._close()  # nobody is there any more, or they don't keep up
                return False
            return True

    def _open(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        ours.settimeout(0)
        with theirs:
            self._nurseries.add(_spawn(_NURSERY, (theirs.fileno(),), os.devnull))
        self._orders = ours

    def _close(self) -> None:
        if self._orders is not None:
            self._orders.close()
            self._orders = None


def _start_cold(message: bytes, lock: int, cwd: int, folder: Path) -> int:
    order = _nowhere(folder)  # an environment may hold secrets, so it is kept off the disk
    try:
        with os.fdopen(os.dup(order), "wb") as file:
            file.write(message)
        os.lseek(order, 0, os.SEEK_SET)
        return _spawn(_COLD, (order, lock, cwd), str(folder / records.LOG))
    finally:
        os.close(order)


def _nowhere(folder: Path) -> int:
    """Return an open file without a name: in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(records.SPEC, os.MFD_CLOEXEC)
    path = folder / f".{records.SPEC}.order"
    order = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    path.unlink()
    return order


def _spawn(program: str, handles: Handles, log: str) -> int:
    """Start a program with *handles* as its descriptors from 3 on; return its pid."""
    # Duplicates far up, so that none stands at a number that another is moved to.
    shifted = [_above(handle) for handle in handles]
    moves = [(os.POSIX_SPAWN_DUP2, handle, 3 + n) for n, handle in enumerate(shifted)]
    try:
        return os.posix_spawn(  # our own interpreter; the argv is no shell's
            sys.executable,
            [*_PYTHON, program],
            {COMMAND_VARIABLE: f"shim-of-{os.getpid()}"},  # its own, in whatever it runs itself
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                *moves,
            ],
            setsid=True,
        )
    finally:
        for handle in shifted:
            os.close(handle)


def _above(handle: int) -> int:
    return fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3 + 8)
