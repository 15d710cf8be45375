"""Owner: what the shim does while the command runs: spool, signal, reap, and account for it all."""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
from collections.abc import Callable

from upright_execd.shim import ending, kin
from upright_execd.shim.bell import Bell
from upright_execd.shim.child import Child
from upright_execd.shim.order import Order
from upright_execd.shim.records import Pairs
from upright_execd.shim.streams import Output

READ_BYTES = 64 * 1024
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere


class Owner:
    """One running command, from its start to the pairs of its final record.

    ``is_alone``: this process has no child, and so, where it adopts orphans, no descendant.
    """

    def __init__(
        self, order: Order, child: Child, bell: Bell, monotonic: Callable[[], float]
    ) -> None:
        self._pid, self._signal, self._bell, self._monotonic = (
            child.pid,
            order.signal,
            bell,
            monotonic,
        )
        self._begun = monotonic()
        self._output = Output(order.folder, order.quota_bytes, self._elapsed_ns)
        self._open = {handle: number for number, handle in enumerate(child.outputs)}
        self._ending = ending.Ending(
            timeout_s=order.timeout_s, grace_s=order.grace_s, now=self._begun
        )
        self._status: int | None = None
        self._usage: resource.struct_rusage | None = None
        self._ended_ns = 0
        self.is_alone = False

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._ending.phase == ending.OVER

    @property
    def has_ended(self) -> bool:
        """Whether the command itself has ended."""
        return self._status is not None

    def wait_ms(self) -> int:
        """Return how long to wait for the next thing, at most."""
        left_s = self._ending.wait_s(self._monotonic(), has_ended=self._status is not None)
        return math.ceil(left_s * 1000)

    def read(self, handle: int) -> bool:
        """Spool what a pipe has; False at its end."""
        data = os.read(handle, READ_BYTES)
        if not data:
            os.close(handle)
            del self._open[handle]
            return False
        self._output.take(self._open[handle], data)
        self._bell.ring()
        return True

    def heed(self, *, is_cancelled: bool) -> None:
        """Reap who ended, then move the end on; one that came first wins over a cancel."""
        self._reap()
        self._move()
        if is_cancelled:
            self._act(self._ending.ask("cancelled", self._monotonic()))

    def final(self) -> Pairs:
        """Return the final record."""
        name, number = self._ending.outcome(self._status if self._status is not None else 0)
        pairs = [("ending", name), ("started", "yes")]
        if number is not None:
            pairs.append(("number", str(number)))
        pairs += [
            ("elapsed_ms", str((self._ended_ns or self._elapsed_ns()) // 1_000_000)),
            ("pipe_held", str(int(bool(self._open)))),
        ]
        if self._usage is not None:
            cpu_s = self._usage.ru_utime + self._usage.ru_stime
            pairs.append(("cpu_ms", str(round(cpu_s * 1000))))
            pairs.append(("peak_memory_bytes", str(self._usage.ru_maxrss * _PEAK_UNIT)))
        survivors = [] if self.is_alone else kin.named(kin.descendants())
        return [*pairs, *self._output.pairs(), *(("survivor", said) for said in survivors)]

    def _move(self) -> None:
        has_ended = self._status is not None
        is_asked = self._ending.phase in {ending.ASKED, ending.KILLING}
        action = self._ending.look(
            self._monotonic(),
            has_ended=has_ended,
            has_kin=is_asked and has_ended and not self.is_alone and kin.any_left(self._pid),
            is_open=bool(self._open),
        )
        self._act(action)

    def _act(self, action: str) -> None:
        if action == ending.SIGNAL:
            kin.send(self._pid, self._signal)
            kin.send(self._pid, signal.SIGCONT)  # a stopped process would not hear it
        elif action == ending.KILL:
            kin.kill_all(self._pid)

    def _reap(self) -> None:
        """Take the status of every child that ended: the command, and adopted orphans."""
        self.is_alone = False
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_alone = kin.is_parent_of_last_resort()
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status, self._usage = os.waitstatus_to_exitcode(status), usage
                self._ended_ns = self._elapsed_ns()

    def _elapsed_ns(self) -> int:
        return round((self._monotonic() - self._begun) * 1e9)
