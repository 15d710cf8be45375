"""Child: the command's own process: born behind a gate, so that its start is on record first."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

EXIT_UNBORN = 127
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""What a shim doesn't hear: whoever ends the whole machine ends the command, and it tells that."""
RESTORED = (*IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)


class Child:
    """A forked process that waits at a gate before it becomes the command.

    ``pid`` is also its group and session. ``outputs`` are the ends to read stdout and stderr from.
    *confine* is called in it last of all.
    """

    def __init__(
        self, argv: list[bytes], cwd: int, stdin: str, confine: Callable[[], None]
    ) -> None:
        gate, self._gate = os.pipe()
        self._failure, failure = os.pipe()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.outputs = (out, err)
        source = os.open(stdin, os.O_RDONLY)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            _set_the_stage((source, out_end, err_end))
            if os.read(gate, 1):
                _become(argv, cwd, confine, failure)
            os._exit(EXIT_UNBORN)
        for handle in (gate, failure, out_end, err_end, source, cwd):
            os.close(handle)

    def release(self) -> int:
        """Open the gate; return 0 once the command runs, else the errno that kept it from it."""
        os.write(self._gate, b"g")
        os.close(self._gate)
        said = os.read(self._failure, 16)
        os.close(self._failure)
        return int(said or b"0")

    def drop(self) -> None:
        """Close the gate for good: the process ends without having become anything."""
        os.close(self._gate)
        os.close(self._failure)


def _set_the_stage(standard: tuple[int, int, int]) -> None:
    """Run in the child: a session of its own, its streams, and the signals as a program expects."""
    os.setsid()
    for number, handle in enumerate(standard):
        os.dup2(handle, number)
    signal.set_wakeup_fd(-1)
    for number in RESTORED:
        signal.signal(number, signal.SIG_DFL)


def _become(argv: list[bytes], cwd: int, confine: Callable[[], None], failure: int) -> None:
    """Run in the child: become the command, or say why not."""
    try:
        os.fchdir(cwd)
        confine()
        os.execvp(argv[0], argv)  # noqa: S606  # argv is what was judged, without a shell
    except OSError as error:
        os.write(failure, str(error.errno).encode("ascii"))
