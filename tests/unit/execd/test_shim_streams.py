from __future__ import annotations

import hashlib
import itertools
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright_execd.shim.records import INDEX_RECORD
from upright_execd.shim.streams import Output
from upright_execd.spool.outcome import from_pairs
from upright_execd.spool.reading import read
from upright_wire.command import Outcome, Stream, Totals

PIECES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 90)), max_size=30)
STREAMS = (Stream.STDOUT, Stream.STDERR)


def ended(output: Output) -> tuple[Totals, Totals]:
    pairs = [("ending", "exited"), ("started", "yes"), ("number", "0"), *output.pairs()]
    outcome: Outcome = from_pairs(pairs, ())
    return outcome.stdout, outcome.stderr


def whole(folder: Path, stream: Stream, totals: Totals, step: int) -> list[bytes | int]:
    parts: list[bytes | int] = []
    offset = 0
    while True:
        piece = read(folder, stream, offset, step, totals=totals)
        offset += len(piece.data) + piece.omitted
        parts += [piece.omitted] if piece.omitted else [piece.data]
        if piece.end:
            assert offset == totals.bytes
            return parts


def assert_fits(data: bytes, parts: list[bytes | int]) -> None:
    offset = 0
    for part in parts:
        if isinstance(part, bytes):
            assert data[offset : offset + len(part)] == part
        offset += len(part) if isinstance(part, bytes) else part
    assert offset == len(data)


@pytest.mark.clause("E5.5")
@given(pieces=PIECES, quota=st.integers(0, 400), step=st.integers(1, 50))
def test_beginning_gap_and_end_are_exact_for_every_order_of_pieces(
    pieces: list[tuple[int, int]], quota: int, step: int
) -> None:
    with TemporaryDirectory() as name:
        folder, numbers = Path(name), itertools.count()
        output = Output(name, quota, lambda: 0)
        written = [b"", b""]
        for number, size in pieces:
            data = bytes(next(numbers) % 251 for _ in range(size))
            written[number] += data
            output.take(number, data)
        for data, stream, totals in zip(written, STREAMS, ended(output), strict=True):
            assert totals.bytes == len(data)
            assert totals.sha256 == hashlib.sha256(data).hexdigest()
            assert_fits(data, whole(folder, stream, totals, step))
        stored = sum(path.stat().st_size for path in folder.glob("[oe]*"))
        assert stored <= quota


def test_within_the_quota_nothing_is_omitted(tmp_path: Path) -> None:
    output = Output(str(tmp_path), 1000, lambda: 0)
    output.take(0, b"a" * 500)
    output.take(1, b"b" * 50)
    assert [totals.omitted for totals in ended(output)] == [(), ()]


def test_while_it_runs_only_the_head_is_offered(tmp_path: Path) -> None:
    output = Output(str(tmp_path), 40, lambda: 0)
    output.take(0, bytes(range(60)))
    assert read(tmp_path, Stream.STDOUT, 0, 100, totals=None).data == bytes(range(20))
    piece = read(tmp_path, Stream.STDOUT, 20, 100, totals=None)
    assert (piece.data, piece.omitted, piece.end) == (b"", 0, False)


def test_the_index_tells_when_which_piece_came(tmp_path: Path) -> None:
    times = itertools.count(5)
    output = Output(str(tmp_path), 1000, lambda: next(times))
    output.take(0, b"abc")
    output.take(1, b"d")
    output.take(0, b"ef")
    records = list(struct.iter_unpack(INDEX_RECORD, (tmp_path / "index").read_bytes()))
    assert records == [(5, 0, 3, 0), (6, 0, 1, 1), (7, 3, 2, 0)]


def test_a_disk_that_refuses_the_head_leaves_it_to_the_ring(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/dev/full")
    output = Output(str(tmp_path), 400, lambda: 0)
    output.take(0, b"a" * 300)
    totals, _ = ended(output)
    assert totals.bytes == 300
    assert [(gap.offset, gap.count) for gap in totals.omitted] == [(0, 200)]


@pytest.mark.clause("E5.5")
def test_a_disk_that_refuses_all_is_counted_exactly(tmp_path: Path) -> None:
    for name in ("out", "out.tail", "index"):
        (tmp_path / name).symlink_to("/dev/full")
    output = Output(str(tmp_path), 400, lambda: 0)
    for _ in range(3):
        output.take(0, b"a" * 100)
    totals, _ = ended(output)
    assert [(gap.offset, gap.count) for gap in totals.omitted] == [(0, 300)]
    assert totals.sha256 == hashlib.sha256(b"a" * 300).hexdigest()
