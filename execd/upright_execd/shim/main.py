"""Main: one command from the gate to its final record, in a process of its own.

Order of things, on which the promise "at most once" rests: the lock is inherited held; a fence is
looked for; the child is forked behind a gate; ``started`` is made, exclusively; the fence is looked
for again; only then the gate opens. Whoever makes the fence looks for ``started`` after that, so at
least one of the two sees the other.
"""

from __future__ import annotations

import errno
import os
import select
import signal
from collections.abc import Callable

from upright_execd.shim import kin
from upright_execd.shim.bell import Bell
from upright_execd.shim.child import IGNORED, Child
from upright_execd.shim.order import Order
from upright_execd.shim.records import (
    CANCEL,
    CONTROL,
    EXIT,
    RUNNING,
    STARTED,
    STDIN,
    Pairs,
    Reserved,
    write_exclusive,
)

EX_SOFTWARE = 70
_FENCED = [("ending", "cancelled"), ("started", "no")]


def main(args: list[str], monotonic: Callable[[], float]) -> int:
    """Own one command; return 0 once its end is on record."""
    order = Order(args)
    for handle in (order.lock, order.cwd):
        os.set_inheritable(handle, False)  # noqa: FBT003  # takes it by position only
    bell = Bell(order.bell, os.path.basename(order.folder))
    final = Reserved(order.folder, EXIT)
    control = os.open(f"{order.folder}/{CONTROL}", os.O_RDWR | os.O_NONBLOCK)
    if _is_fenced(order):
        final.write(_FENCED)
        bell.ring()
        return 0
    kin.adopt_orphans()
    children = _watch_children()
    try:
        confine = _confinement(order)
    except OSError as error:
        final.write(_failed(error.errno or errno.EIO))
        bell.ring()
        return 0
    stdin = f"{order.folder}/{STDIN}"
    source = stdin if os.path.exists(stdin) else os.devnull
    child = Child(order.argv, order.cwd, source, confine)
    begun = [("pid", str(child.pid)), ("start_time", kin.start_time(child.pid))]
    if not write_exclusive(order.folder, STARTED, begun):
        child.drop()
        return EX_SOFTWARE  # this command was started before: nothing may be said or done
    if _is_fenced(order):
        child.drop()
        final.write(_FENCED)
    elif number := child.release():
        final.write(_failed(number))
    else:
        final.write(_own(order, child, bell, (control, children), monotonic=monotonic))
    bell.ring()
    return 0


def _failed(number: int) -> Pairs:
    return [("ending", "spawn_failed"), ("number", str(number)), ("started", "no")]


def _confinement(order: Order) -> Callable[[], None]:
    """Return what confines the child; the rules are made here, before there is one."""
    if not order.writable:
        return lambda: None
    from upright_execd.shim import landlock  # noqa: PLC0415  # 3 ms that most don't need

    rules = landlock.ruleset(order.writable)
    return lambda: landlock.restrict(rules)


def _is_fenced(order: Order) -> bool:
    return os.path.exists(f"{order.folder}/{CANCEL}")


def _watch_children() -> int:
    """Ignore what is not for the shim; return a handle that is readable when a child has ended."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reader


def _own(
    order: Order,
    child: Child,
    bell: Bell,
    signals: tuple[int, int],
    *,
    monotonic: Callable[[], float],
) -> Pairs:
    """Stay with the running command until its end; *signals* are the control and child handles."""
    write_exclusive(order.folder, RUNNING, [])
    bell.ring()
    # Imported late: the command runs by now, and this costs as much as the interpreter itself.
    from upright_execd.shim.owner import Owner  # noqa: PLC0415  # off the path to the start

    owner = Owner(order, child, bell, monotonic)
    poll = select.poll()
    for handle in (*signals, *child.outputs):
        poll.register(handle, select.POLLIN)
    owner.heed(is_cancelled=_is_fenced(order))
    while not owner.is_over:
        ready = [handle for handle, _ in poll.poll(owner.wait_ms())]
        for handle in ready:
            if handle in signals:
                _empty(handle)
            elif not owner.read(handle):
                poll.unregister(handle)
        owner.heed(is_cancelled=signals[0] in ready and _is_fenced(order))
    return owner.final()


def _empty(handle: int) -> None:
    try:
        os.read(handle, 4096)
    except BlockingIOError:
        pass  # the byte is gone already; what it stood for is looked at anyway
