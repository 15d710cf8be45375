"""Order: what the daemon tells a shim: the arguments of its command line, or one message."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping

_COUNT = struct.Struct(">I")
LOCK, CWD = 2, 3  # where the arguments name the two file descriptors
WRITABLE, READABLE, HIDDEN, PROGRAM = (
    b"w",
    b"r",
    b"h",
    b"p",
)  # before each path: none is taken for the dashes


class Order:
    """One command. *lock* and *cwd* are file descriptors; *signal* is a number.

    *writable* are the absolute paths below which alone it may change anything; none: unconfined.
    *readable* are those that it may read beside; none: all but *hidden*. *without_network*: it
    opens no socket.
    *program* is the file to run; empty: the one that the PATH finds for the first word of *argv*.
    *variables* is the environment that the command starts with.
    """

    def __init__(self, args: list[bytes], variables: Mapping[bytes, bytes]) -> None:
        folder, bell, lock, cwd, timeout_ms, grace_ms, quota_bytes, number, network = args[:9]
        dashes = args.index(b"--", 9)
        if not args[dashes + 1 :]:
            raise ValueError("--")
        self.folder, self.bell = os.fsdecode(folder), os.fsdecode(bell)
        self.lock, self.cwd = int(lock), int(cwd)
        self.timeout_s, self.grace_s = int(timeout_ms) / 1000, int(grace_ms) / 1000
        self.quota_bytes, self.signal = int(quota_bytes), int(number)
        self.without_network = network == b"0"
        self.writable = _paths(args[9:dashes], WRITABLE)
        self.readable = _paths(args[9:dashes], READABLE)
        self.hidden = _paths(args[9:dashes], HIDDEN)
        self.program = next(iter(_paths(args[9:dashes], PROGRAM)), "")
        self.argv = args[dashes + 1 :]
        self.variables = variables


def arguments(
    numbers: dict[str, int],
    places: tuple[str, str],
    paths: Mapping[bytes, Iterable[os.PathLike[str]]],
    argv: list[bytes],
) -> list[bytes]:
    """Write an order as :class:`Order` reads it.

    *numbers* has its number fields by name, *places* its folder and its bell, *paths* the others
    by what they are for.
    """
    names = ("lock", "cwd", "timeout_ms", "grace_ms", "quota_bytes", "signal", "network")
    ordered = [str(numbers[name]).encode("ascii") for name in names]
    marked = [kind + os.fsencode(path) for kind, found in paths.items() for path in found]
    return [*map(os.fsencode, places), *ordered, *marked, b"--", *argv]


def message(args: list[bytes], variables: Mapping[bytes, bytes]) -> bytes:
    """Write arguments and environment as one message; no word of either holds a zero byte."""
    words = [*args, *(name + b"=" + value for name, value in variables.items())]
    return _COUNT.pack(len(args)) + b"\0".join(words)


def from_message(content: bytes, lock: int, cwd: int) -> Order:
    """Read :func:`message`; the two descriptors came beside it, under numbers of their own."""
    (count,) = _COUNT.unpack_from(content)
    words = content[_COUNT.size :].split(b"\0")
    args = words[:count]
    args[LOCK], args[CWD] = str(lock).encode("ascii"), str(cwd).encode("ascii")
    pairs = (word.partition(b"=") for word in words[count:])
    return Order(args, {name: value for name, _, value in pairs})


def _paths(words: list[bytes], kind: bytes) -> list[str]:
    return [os.fsdecode(word[len(kind) :]) for word in words if word.startswith(kind)]


def folder_of(content: bytes) -> str:
    """Return the command's folder out of a message."""
    return os.fsdecode(content[_COUNT.size : content.index(b"\0", _COUNT.size)])
