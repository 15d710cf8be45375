"""Nursery: keeps a few shims warm: forked, with everything imported, waiting for an order.

All of them wait on one socket, and each message is taken by one of them whole. A shim that has an
order is on its own: the nursery may end, and ends with its daemon, which holds the other end of the
socket; the shim goes on to the end of its command. One that is done, with nothing left of its
command, waits for the next, if there aren't enough that do. Linux only.
"""

from __future__ import annotations

import array
import gc
import mmap
import os
import select
import signal
import socket
import struct
import sys
import traceback
import warnings
from collections.abc import Callable
from types import TracebackType

from upright_execd.shim import landlock, owner, seccomp
from upright_execd.shim.main import Shim
from upright_execd.shim.order import folder_of
from upright_execd.shim.records import LOG

ORDERS = 3  # the file descriptor of the socket
LEAST, MOST = 2, 8  # how many wait: always, and after a burst
IDLE_S = 60  # how long more than the least wait
MAX_ORDER_BYTES = 96 * 1024
NEEDED = (landlock, owner, seccomp, warnings)
"""What is imported late otherwise, because a cold shim is not to wait for it: here it is there."""
_TELLING = struct.Struct("<cI")  # whether it waits (w) or works (b), and which
_HANDLES = 256  # above all that a shim opens

Monotonic = Callable[[], float]


class Nursery:
    """The parent of all shims; it does nothing but count who waits, and fork."""

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._orders = socket.socket(fileno=ORDERS)
        self._orders.set_inheritable(False)
        limit = struct.pack("@ll", IDLE_S, 0)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._told, self._teller = os.pipe()
        self._ends, ended = os.pipe()
        for handle in (self._told, self._ends, ended):
            os.set_blocking(handle, False)
        signal.set_wakeup_fd(ended, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._waiting: set[int] = set()
        self._count = mmap.mmap(-1, 1)  # how many wait, for the shims to read

    def run(self) -> None:
        """Keep shims warm until the daemon is gone."""
        os.chdir("/")
        gc.freeze()  # what is shared with the shims stays shared
        poll = select.poll()
        poll.register(self._orders, 0)  # only its end
        poll.register(self._told, select.POLLIN)
        poll.register(self._ends, select.POLLIN)
        least = LEAST
        while True:
            while len(self._waiting) < least:
                self._fork()
            self._count[0] = min(len(self._waiting), 255)
            if any(handle == ORDERS for handle, _ in poll.poll()):
                return
            self._listen()
            self._waiting -= _ended(self._ends)
            least = 1  # the others come back, or the next burst has them made

    def _fork(self) -> None:
        pid = os.fork()
        if pid == 0:
            for handle in (self._told, self._ends):
                os.close(handle)
            Warm(self._orders, self._teller, self._count, self._monotonic).serve()
            os._exit(0)
        self._waiting.add(pid)

    def _listen(self) -> None:
        try:
            said = os.read(self._told, 64 * _TELLING.size)
        except BlockingIOError:
            return
        for what, pid in _TELLING.iter_unpack(said):
            if what == b"w":
                self._waiting.add(pid)
            else:
                self._waiting.discard(pid)


class Warm:
    """A shim of the nursery."""

    def __init__(
        self, orders: socket.socket, teller: int, count: mmap.mmap, monotonic: Monotonic
    ) -> None:
        self._orders, self._teller, self._count = orders, teller, count
        os.setsid()
        self._shim = Shim(monotonic)
        self._folder = ""
        sys.excepthook = self._broken

    def serve(self) -> None:
        """Own one command after the other."""
        while True:
            try:
                content, handles = _take(self._orders)
            except BlockingIOError:
                if self._count[0] > LEAST:
                    return
                continue
            if not content:
                return  # the daemon is gone
            self._tell(b"b")
            self._folder = folder_of(content)
            is_alone = self._shim.own(content, (handles[0], handles[1]))
            if not is_alone or self._count[0] >= MOST:
                return
            _close_others([self._orders.fileno(), self._teller, *self._shim.handles])
            self._tell(b"w")

    def _tell(self, what: bytes) -> None:
        try:
            os.write(self._teller, _TELLING.pack(what, os.getpid()))
        except OSError:
            pass  # the nursery is gone; so is the daemon, or the next one has another

    def _broken(
        self, _kind: type[BaseException], error: BaseException, _trace: TracebackType | None
    ) -> None:
        """Leave in the command's folder what broke; its lock tells the daemon the rest."""
        with open(f"{self._folder}/{LOG}", "a", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(error, file=file)


def main(monotonic: Monotonic) -> None:
    """Keep shims warm until the daemon is gone."""
    Nursery(monotonic).run()


def _take(orders: socket.socket) -> tuple[bytes, list[int]]:
    """Wait for a message and the two handles beside it; nothing when the daemon is gone."""
    handles = array.array("i")
    room = socket.CMSG_LEN(2 * handles.itemsize)
    content, beside, _, _ = orders.recvmsg(MAX_ORDER_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in beside:
        handles.frombytes(data)
    return content, handles.tolist()


def _close_others(kept: list[int]) -> None:
    """Close what a command left open."""
    last = 2
    for handle in [*sorted(kept), _HANDLES]:
        os.closerange(last + 1, handle)
        last = handle


def _ended(reader: int) -> set[int]:
    """Reap whoever ended."""
    found: set[int] = set()
    try:
        os.read(reader, 4096)
    except BlockingIOError:
        return found
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.add(pid)
