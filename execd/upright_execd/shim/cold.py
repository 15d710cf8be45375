"""Cold: a shim that is started by itself; its order lies in an open file that it inherits."""

from __future__ import annotations

import os
from collections.abc import Callable

from upright_execd.shim.main import Shim

ORDER, LOCK, CWD = 3, 4, 5  # its file descriptors, after stdin, stdout and stderr


def run(monotonic: Callable[[], float]) -> None:
    """Own the command of the order."""
    for handle in (ORDER, LOCK, CWD):
        os.set_inheritable(handle, False)  # noqa: FBT003  # takes it by position only
    with os.fdopen(ORDER, "rb") as file:
        content = file.read()
    Shim(monotonic).own(content, (LOCK, CWD))
