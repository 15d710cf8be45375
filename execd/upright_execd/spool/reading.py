"""Reading: a stream of a command by offset, across its head, its gap and its kept end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from upright_execd.ports import Piece
from upright_execd.shim.records import TAIL
from upright_wire.command import Stream, Totals

FILES: Final = {Stream.STDOUT: "out", Stream.STDERR: "err"}
"""The file of a stream's head."""


def read(
    folder: Path, stream: Stream, offset: int, max_bytes: int, *, totals: Totals | None
) -> Piece:
    """Return what *stream* holds at *offset*; *totals* once the command has ended.

    While it runs, only the head is offered: what the ring holds is not settled before the end.
    Blocks; call it in a thread.
    """
    path = folder / FILES[stream]
    head = _size(path)
    if offset < head:
        data = _slice(path, offset, min(max_bytes, head - offset))
        return Piece(data=data, end=totals is not None and offset + len(data) == totals.bytes)
    if totals is None:
        return Piece()
    for gap in totals.omitted:
        if gap.offset <= offset < gap.offset + gap.count:
            left = gap.offset + gap.count - offset
            return Piece(omitted=left, end=offset + left == totals.bytes)
    ring = path.with_name(path.name + TAIL)
    return _from_ring(ring, head=head, offset=offset, max_bytes=max_bytes, total=totals.bytes)


def stored_bytes(folder: Path, stream: Stream) -> int:
    """Return how many bytes of the stream can be read from its beginning without a gap."""
    return _size(folder / FILES[stream])


def _from_ring(ring: Path, *, head: int, offset: int, max_bytes: int, total: int) -> Piece:
    size = _size(ring)
    if offset >= total or not size:
        return Piece(end=True)
    place = (offset - head) % size
    data = _slice(ring, place, min(max_bytes, total - offset, size - place))
    return Piece(data=data, end=offset + len(data) == total)


def _slice(path: Path, offset: int, count: int) -> bytes:
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.pread(handle, count, offset)
    finally:
        os.close(handle)


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
