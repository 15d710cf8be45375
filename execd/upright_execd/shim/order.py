"""Order: what the daemon tells a shim, as the arguments of its command line, and nothing else."""

from __future__ import annotations

import os


class Order:
    """One command. *lock* and *cwd* are inherited file descriptors; *signal* is a number."""

    def __init__(self, args: list[str]) -> None:
        folder, bell, lock, cwd, timeout_ms, grace_ms, quota_bytes, number, dashes = args[:9]
        if dashes != "--" or not args[9:]:
            raise ValueError(dashes)
        self.folder, self.bell = folder, bell
        self.lock, self.cwd = int(lock), int(cwd)
        self.timeout_s, self.grace_s = int(timeout_ms) / 1000, int(grace_ms) / 1000
        self.quota_bytes, self.signal = int(quota_bytes), int(number)
        self.argv = [os.fsencode(arg) for arg in args[9:]]


def arguments(numbers: dict[str, int], folder: str, bell: str, argv: list[bytes]) -> list[bytes]:
    """Write an order as :class:`Order` reads it; *numbers* has its number fields by name."""
    names = ("lock", "cwd", "timeout_ms", "grace_ms", "quota_bytes", "signal")
    ordered = [str(numbers[name]).encode("ascii") for name in names]
    return [os.fsencode(folder), os.fsencode(bell), *ordered, b"--", *argv]
