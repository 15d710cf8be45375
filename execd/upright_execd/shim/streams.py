"""Streams: what a command prints, as bytes, with the beginning and the end kept under a quota."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable

from upright_execd.shim.records import INDEX, INDEX_RECORD, STREAMS, TAIL, Pairs

TAIL_BYTES = 1024 * 1024
INDEX_MAX_BYTES = 4 * 1024 * 1024


def tail_size(quota_bytes: int) -> int:
    """Return how much of each stream's end is kept: a MiB, or a quarter of a small quota."""
    return min(TAIL_BYTES, quota_bytes // 4)


class Budget:
    """What is left for the beginnings of both streams."""

    def __init__(self, quota_bytes: int) -> None:
        self.left = quota_bytes - 2 * tail_size(quota_bytes)

    def take(self, wanted: int) -> int:
        """Take up to *wanted* bytes."""
        taken = min(wanted, self.left)
        self.left -= taken
        return taken


class Stream:
    """One stream: ``total`` bytes came, the first ``head`` of them lie in the file of its name.

    What comes after the head goes into a ring, so the last bytes are there as well; what neither
    holds is omitted, and counted. A disk that refuses a byte ends the head, or empties the ring:
    the count stays exact.
    """

    def __init__(self, folder: str, name: str, quota_bytes: int, budget: Budget) -> None:
        self.name, self.total, self.head = name, 0, 0
        self._budget, self._open, self._sha = budget, True, hashlib.sha256()
        self._file = _Appended(f"{folder}/{name}")
        self._tail = _Ring(f"{folder}/{name}{TAIL}", tail_size(quota_bytes))

    def take(self, data: bytes) -> int:
        """Keep what can be kept; return how many bytes went to the head."""
        self._sha.update(data)
        self.total += len(data)
        kept = 0
        if self._open:
            granted = self._budget.take(len(data))
            kept = self._file.write(data[:granted])
            self._open = kept == len(data)
            self.head += kept
        if kept < len(data):
            self._tail.write(data[kept:])
        return kept

    def pairs(self) -> Pairs:
        """Return the stream's part of the final record."""
        return [
            (f"{self.name}.total", str(self.total)),
            (f"{self.name}.head", str(self.head)),
            (f"{self.name}.kept", str(self._tail.kept)),
            (f"{self.name}.sha256", self._sha.hexdigest()),
        ]


class _Ring:
    """The last *size* bytes of what is written, byte n at place n modulo *size*."""

    def __init__(self, path: str, size: int) -> None:
        self._path, self._size, self._length, self._file = path, size, 0, -1
        self._sound = size > 0

    @property
    def kept(self) -> int:
        return min(self._length, self._size) if self._sound else 0

    def write(self, data: bytes) -> None:
        if not self._sound:
            return
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._length += len(data)
        last = data[-self._size :]
        place = (self._length - len(last)) % self._size
        first = last[: self._size - place]
        rest = last[len(first) :]
        try:
            whole = os.pwrite(self._file, first, place) == len(first)
            self._sound = whole and (not rest or os.pwrite(self._file, rest, 0) == len(rest))
        except OSError:
            self._sound = False  # the disk is full: what was in the ring is half overwritten


class Output:
    """Both streams of a command, and the index that tells when which piece came."""

    def __init__(self, folder: str, quota_bytes: int, elapsed_ns: Callable[[], int]) -> None:
        budget = Budget(quota_bytes)
        self.streams = [Stream(folder, name, quota_bytes, budget) for name in STREAMS]
        self._elapsed_ns, self._index_left = elapsed_ns, INDEX_MAX_BYTES
        self._index = _Appended(f"{folder}/{INDEX}")

    def take(self, number: int, data: bytes) -> None:
        """Keep a piece of stream *number* (0 out, 1 err)."""
        stream = self.streams[number]
        offset = stream.total
        kept = stream.take(data)
        if kept and self._index_left > 0:
            record = struct.pack(INDEX_RECORD, self._elapsed_ns(), offset, kept, number)
            self._index_left -= len(record)
            if self._index.write(record) < len(record):
                self._index_left = 0  # the disk is full: the order of the rest is not known

    def pairs(self) -> Pairs:
        """Return the streams' part of the final record."""
        return [pair for stream in self.streams for pair in stream.pairs()]


class _Appended:
    """A file that is made when there is something to put into it."""

    def __init__(self, path: str) -> None:
        self._path, self._file = path, -1

    def write(self, data: bytes) -> int:
        """Append as much as the disk takes; return how much that was."""
        done = 0
        try:
            if self._file < 0 and data:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._file = os.open(self._path, flags, 0o600)
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError:
            pass  # full, or over a limit: the caller counts what is missing
        return done
