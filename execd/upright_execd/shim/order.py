"""Order: what the daemon tells a shim, as the arguments of its command line, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable


class Order:
    """One command. *lock* and *cwd* are inherited file descriptors; *signal* is a number.

    *writable* are the absolute paths below which alone it may change anything; none: unconfined.
    """

    def __init__(self, args: list[str]) -> None:
        folder, bell, lock, cwd, timeout_ms, grace_ms, quota_bytes, number = args[:8]
        dashes = args.index("--", 8)
        if not args[dashes + 1 :]:
            raise ValueError("--")
        self.folder, self.bell = folder, bell
        self.lock, self.cwd = int(lock), int(cwd)
        self.timeout_s, self.grace_s = int(timeout_ms) / 1000, int(grace_ms) / 1000
        self.quota_bytes, self.signal = int(quota_bytes), int(number)
        self.writable = args[8:dashes]
        self.argv = [os.fsencode(arg) for arg in args[dashes + 1 :]]


def arguments(
    numbers: dict[str, int],
    places: tuple[str, str],
    writable: Iterable[os.PathLike[str]],
    argv: list[bytes],
) -> list[bytes]:
    """Write an order as :class:`Order` reads it.

    *numbers* has its number fields by name, *places* its folder and its bell.
    """
    names = ("lock", "cwd", "timeout_ms", "grace_ms", "quota_bytes", "signal")
    ordered = [str(numbers[name]).encode("ascii") for name in names]
    paths = [os.fsencode(path) for path in writable]
    return [*map(os.fsencode, places), *ordered, *paths, b"--", *argv]
