"""Records: the small files that a shim leaves, ``key=value`` a line, whole or not there at all."""

from __future__ import annotations

import os

Pairs = list[tuple[str, str]]
SPEC = "spec"  # what was accepted, as JSON; synced before anything else happens
STDIN = "stdin"  # the input, whole
LOCK = "lock"  # held for as long as a shim lives, or is being born
CONTROL = "control"  # a FIFO: a byte makes the shim look for CANCEL
CANCEL = "cancel"  # there: the command is to end, or never to start
STARTED = "started"  # the program may run from here on; exclusive, and made before it does
RUNNING = "running"  # pid and start time: the program runs, its exec did not fail
EXIT = "exit"  # the end
STREAMS = ("out", "err")
INDEX = "index"  # when which piece came: INDEX_RECORD each
LOG = "shim.log"  # what a broken shim said last
TAIL = ".tail"  # behind a stream's name: its last bytes, as a ring
INDEX_RECORD = "<QQIB3x"  # nanoseconds since the start, offset, length, stream (0 out, 1 err)
RESERVE_BYTES = 4096
_COMPLETE = "complete"


def render(pairs: Pairs) -> bytes:
    """Write pairs as text; values are numbers, names and digests: no value has a line end."""
    lines = [f"{key}={value}\n" for key, value in (*pairs, (_COMPLETE, "1"))]
    return "".join(lines).encode("ascii", "backslashreplace")


def parse(content: bytes) -> Pairs | None:
    """Read what :func:`render` wrote; None when it is torn or empty."""
    lines = content.decode("ascii", "replace").splitlines()
    pairs = [(key, value) for key, _, value in (line.partition("=") for line in lines)]
    if not content.endswith(b"\n") or pairs[-1:] != [(_COMPLETE, "1")]:
        return None
    return pairs[:-1]


def claim(folder: str, name: str) -> bool:
    """Make a record that says all by being there; False when there already is one."""
    try:
        os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def write(folder: str, name: str, pairs: Pairs) -> None:
    """Write a record, whole at once."""
    temporary = f"{folder}/.{name}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, render(pairs))
    finally:
        os.close(handle)
    os.rename(temporary, f"{folder}/{name}")


class Reserved:
    """A record whose room on the disk is taken early, so that a full disk can't suppress it."""

    def __init__(self, folder: str, name: str) -> None:
        self._temporary, self._path = f"{folder}/.{name}", f"{folder}/{name}"
        self._handle = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(self._handle, bytes(RESERVE_BYTES))

    def write(self, pairs: Pairs) -> None:
        """Write the content, cut the rest off, and give the file its name."""
        content = render(pairs)
        os.pwrite(self._handle, content, 0)
        os.ftruncate(self._handle, len(content))
        os.close(self._handle)
        os.rename(self._temporary, self._path)
