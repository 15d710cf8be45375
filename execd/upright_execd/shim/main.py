"""Main: one command from its order to its final record.

Order of things, on which the promise "at most once" rests: the lock comes held; a fence is looked
for; ``started`` is made, exclusively; the fence is looked for again; only then the program is
started, and ``running`` says which process that is. Whoever makes the fence looks for ``started``
after that, so at least one of the two sees the other.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from collections.abc import Callable

from upright_execd.shim import confine, kin
from upright_execd.shim.bell import Bell
from upright_execd.shim.child import Child
from upright_execd.shim.order import Order, from_message
from upright_execd.shim.records import (
    CANCEL,
    CONTROL,
    EXIT,
    RUNNING,
    STARTED,
    STDIN,
    Pairs,
    Reserved,
    claim,
    write,
)

QUIET_MS = 3
"""How long the start is kept from the daemon: what ends sooner is told once, with its end."""
UNHEARD = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""What a shim doesn't heed: whoever ends the whole machine ends the command, and it tells that."""
_FENCED = [("ending", "cancelled"), ("started", "no")]

Monotonic = Callable[[], float]


class Shim:
    """A process that owns commands, one after the other; made once, before the first.

    ``handles`` are its own open files, whatever command it has.
    """

    def __init__(self, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        kin.adopt_orphans()
        self.handles = os.pipe()
        for handle in self.handles:
            os.set_blocking(handle, False)
        self._children, writer = self.handles
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in {*UNHEARD, signal.SIGCHLD, *_inherited()}:
            signal.signal(number, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def own(self, content: bytes, handles: tuple[int, int]) -> bool:
        """Own the command of one message until its end is on record.

        *handles* are its lock and its folder; what is open at the end is the caller's to close.
        Returns whether nothing of it is left, so that this process may own another.
        """
        order = from_message(content, *handles)
        bell = Bell(order.bell, os.path.basename(order.folder))
        final = Reserved(order.folder, EXIT)
        control = os.open(f"{order.folder}/{CONTROL}", os.O_RDWR | os.O_NONBLOCK)
        if not _is_fenced(order) and not claim(order.folder, STARTED):
            return False  # it was started before: nothing may be said or done
        is_alone, end = True, _FENCED
        if not _is_fenced(order):
            try:
                child = self._start(order)
            except OSError as error:
                end = _failed(error.errno or errno.EIO)
            else:
                end, is_alone = self._stay(order, child, bell, control)
        final.write(end)
        bell.ring()
        return is_alone

    def _start(self, order: Order) -> Child:
        stdin = f"{order.folder}/{STDIN}"
        source = stdin if os.path.exists(stdin) else os.devnull
        child = Child(order, source, confine.prepared(order))
        begun = [("pid", str(child.pid)), ("start_time", kin.start_time(child.pid))]
        write(order.folder, RUNNING, begun)
        return child

    def _stay(self, order: Order, child: Child, bell: Bell, control: int) -> tuple[Pairs, bool]:
        """Stay with the running command until its end."""
        # Imported late: a cold shim's command runs by now, and this costs as much as the rest.
        from upright_execd.shim.owner import Owner  # noqa: PLC0415  # off the path to the start

        owner = Owner(order, child, bell, self._monotonic)
        signals = (control, self._children)
        poll = select.poll()
        for handle in (*signals, *child.outputs):
            poll.register(handle, select.POLLIN)
        owner.heed(is_cancelled=_is_fenced(order))
        wait_ms, has_rung = min(QUIET_MS, owner.wait_ms()), False
        while not owner.is_over:
            ready = [handle for handle, _ in poll.poll(wait_ms)]
            for handle in ready:
                if handle in signals:
                    _empty(handle)
                elif not owner.read(handle):
                    poll.unregister(handle)
            owner.heed(is_cancelled=control in ready and _is_fenced(order))
            wait_ms = owner.wait_ms()
            if not has_rung and not owner.has_ended:
                bell.ring()
                has_rung = True
        return owner.final(), owner.is_alone


def _inherited() -> set[int]:
    """Return the signals that whoever started the daemon had ignored, as a shell does with ``&``.

    What is handled here is as usual again in the command; what is ignored would stay so. Python
    has the two for broken pipes and large files, and gives them back by itself.
    """
    own = {signal.SIGPIPE, signal.SIGXFSZ}
    catchable = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP} - own
    return {number for number in catchable if signal.getsignal(number) is signal.SIG_IGN}


def _failed(number: int) -> Pairs:
    return [("ending", "spawn_failed"), ("number", str(number)), ("started", "no")]


def _is_fenced(order: Order) -> bool:
    return os.path.exists(f"{order.folder}/{CANCEL}")


def _empty(handle: int) -> None:
    try:
        os.read(handle, 4096)
    except BlockingIOError:
        pass  # the byte is gone already; what it stood for is looked at anyway
