"""Launch: accepts a command and gives it to a shim of its own, in one blocking step."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from upright_execd.confinement import Bounds
from upright_execd.environment import FOLDER_VARIABLE
from upright_execd.paths import PRIVATE_FOLDER
from upright_execd.shim import order
from upright_execd.shims import Shims
from upright_execd.spool.accepted import Accepted
from upright_execd.spool.store import Spool


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a shim is born with; ``cwd`` is a handle of the judged folder, closed by the launch.

    ``program`` is the very file to run, if a rule of the owner looked at it; empty: as PATH says.
    """

    accepted: Accepted
    cwd: int
    program: str
    variables: Mapping[str, str]
    bell: Path
    quota_bytes: int
    bounds: Bounds


def launch(spool: Spool, shims: Shims, this: Launch) -> None:
    """Accept the command and start its shim; it is synced before the shim hears of it.

    Raises:
        OSError: the disk or the process table refuses; then nothing was started.
    """
    try:
        with spool.accepting(this.accepted) as (folder, lock):
            for path in this.bounds.writable:
                path.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            shims.start(_message(folder.path, this), lock, this.cwd, folder.path)
    finally:
        os.close(this.cwd)


def _message(folder: Path, this: Launch) -> bytes:
    spec = this.accepted.spec
    numbers = {
        "lock": -1,
        "cwd": -1,
        "timeout_ms": spec.timeout_ms,
        "grace_ms": spec.cancel.grace_ms,
        "quota_bytes": this.quota_bytes,
        "signal": signal.Signals[f"SIG{spec.cancel.signal}"].value,
        "network": int(this.bounds.has_network),
    }
    argv = [part.encode() for part in spec.argv]
    places = (str(folder), str(this.bell))
    bounds = this.bounds
    paths = {
        order.WRITABLE: bounds.writable,
        order.READABLE: bounds.readable,
        order.HIDDEN: bounds.hidden,
        order.PROGRAM: (Path(this.program),) if this.program else (),
    }
    words = order.arguments(numbers, places, paths, argv)
    own = {FOLDER_VARIABLE: str(folder)}
    if bounds.writable:
        own["TMPDIR"] = str(bounds.writable[0])
    if bounds.readable:  # its owner's home is out of reach: programs would stumble over that
        own["HOME"] = str(bounds.writable[0])
    variables = {**this.variables, **own}
    return order.message(
        words, {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    )
