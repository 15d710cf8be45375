"""Launch: accepts a command and gives it to a shim of its own, in one blocking step."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright_execd.paths import PRIVATE_FOLDER
from upright_execd.shim import order, records
from upright_execd.spool.accepted import Accepted
from upright_execd.spool.folder import Folder

_ROOT: Final = str(Path(__file__).parents[1])
_BOOT: Final = (
    f"import sys, time; sys.path.insert(0, {_ROOT!r}); from upright_execd.shim.main import main; "
    "sys.exit(main(sys.argv[1:], time.monotonic))"
)
_LOCK, _CWD = 3, 4  # the shim's file descriptors, after stdin, stdout and stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a shim is born with; ``cwd`` is a handle of the judged folder, closed by the launch.

    ``writable`` holds the only folders in which the command may change anything; the first is for
    its temporary files. Empty: it is not confined.
    """

    accepted: Accepted
    cwd: int
    variables: Mapping[str, str]
    bell: Path
    quota_bytes: int
    writable: tuple[Path, ...] = ()


def launch(folder: Folder, this: Launch) -> int:
    """Accept the command and start its shim; return the shim's pid, to be waited for.

    Without ``site`` and in isolated mode: nothing of the command's environment reaches the shim's
    interpreter, and it is up in 10 ms.

    Raises:
        OSError: the disk or the process table refuses; then nothing was started.
    """
    try:
        folder.make()
        for path in this.writable:
            path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        with folder.accepting(this.accepted) as lock:
            return _spawn(folder, this, lock)
    finally:
        os.close(this.cwd)


def _spawn(folder: Folder, this: Launch, lock: int) -> int:
    # Duplicates, so that neither stands at a number that the other is moved to.
    shifted = [os.dup(handle) for handle in (lock, this.cwd)]
    log = str(folder.path / records.LOG)
    try:
        return os.posix_spawn(  # our own interpreter; the argv is no shell's
            sys.executable,
            _command_line(folder, this),
            _variables(this),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, shifted[0], _LOCK),
                (os.POSIX_SPAWN_DUP2, shifted[1], _CWD),
            ],
            setsid=True,
        )
    finally:
        for handle in shifted:
            os.close(handle)


def _command_line(folder: Folder, this: Launch) -> list[bytes]:
    spec = this.accepted.spec
    numbers = {
        "lock": _LOCK,
        "cwd": _CWD,
        "timeout_ms": spec.timeout_ms,
        "grace_ms": spec.cancel.grace_ms,
        "quota_bytes": this.quota_bytes,
        "signal": signal.Signals[f"SIG{spec.cancel.signal}"].value,
    }
    argv = [part.encode() for part in spec.argv]
    python = [os.fsencode(sys.executable), b"-I", b"-S", b"-E", b"-c", _BOOT.encode()]
    words = order.arguments(numbers, (str(folder.path), str(this.bell)), this.writable, argv)
    return [*python, *words]


def _variables(this: Launch) -> dict[str, str]:
    own = {"TMPDIR": str(this.writable[0])} if this.writable else {}
    return {**this.variables, **own}
