"""Child: starts the command's own process, under its bounds, without a copy of the shim."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable

from upright_execd.shim.order import Order


class Child:
    """The running command. ``pid`` is also its group and session.

    ``outputs`` are the ends to read stdout and stderr from. The shim's signals are handled, none is
    ignored: so the command has all of them as a program expects.

    Raises:
        OSError: it can't be started, or not under its bounds; then nothing runs.
    """

    def __init__(self, order: Order, stdin: str, confine: Callable[[], None] | None) -> None:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.outputs = (out, err)
        source = os.open(stdin, os.O_RDONLY)
        self._streams = (source, out_end, err_end)
        os.fchdir(order.cwd)
        try:
            self.pid = self._born(order, confine)
        finally:
            os.chdir("/")
            for handle in self._streams:
                os.close(handle)

    def _born(self, order: Order, confine: Callable[[], None] | None) -> int:
        if confine is None:
            return self._spawn(order)
        # Bounds are a thread's own and go to what it starts: so a thread takes them on, and ends.
        found: list[int | OSError] = []

        def bounded() -> None:
            try:
                confine()
                found.append(self._spawn(order))
            except OSError as error:
                found.append(error)

        thread = threading.Thread(target=bounded)
        thread.start()
        thread.join()
        (said,) = found
        if isinstance(said, OSError):
            raise said
        return said

    def _spawn(self, order: Order) -> int:
        source, out, err = self._streams
        process = subprocess.Popen(  # noqa: S603  # argv is what was judged, without a shell
            order.argv,
            executable=order.program or None,
            env=dict(order.variables),
            stdin=source,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        process.returncode = 0  # it is reaped by its owner, not by this object
        return process.pid
