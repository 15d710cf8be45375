from __future__ import annotations

import hashlib

import pytest

from upright_execd.command import Command, Input
from upright_wire.command import Allow, Begin, End, Ending, Outcome, Started, State
from upright_wire.errors import IllegalMoveError
from upright_wire.spec import Stdin

DATA = b"0123456789"


def wanted(data: bytes = DATA) -> Input:
    return Input(Stdin(bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))


def put(into: Input, offset: int, data: bytes, *, is_end: bool = False) -> None:
    into.keep(into.fresh(offset, data), is_end=is_end)


def test_pieces_that_overlap_are_counted_once() -> None:
    into = wanted()
    for offset, end in ((0, 4), (2, 7), (0, 7), (7, 10)):
        put(into, offset, DATA[offset:end])
    assert (into.offset, into.is_complete.is_set(), into.is_right) == (10, True, True)


def test_a_gap_is_not_filled_with_anything() -> None:
    into = wanted()
    put(into, 3, DATA[3:])
    assert (into.offset, into.is_complete.is_set()) == (0, False)


@pytest.mark.parametrize("data", [b"012345678", b"0123456780", b"0123456789x"])
def test_input_that_is_short_wrong_or_too_much_is_not_right(data: bytes) -> None:
    into = wanted()
    put(into, 0, data, is_end=True)
    assert (into.is_complete.is_set(), into.is_right) == (True, False)


def test_no_bytes_are_complete_from_the_beginning() -> None:
    into = wanted(b"")
    assert (into.is_complete.is_set(), into.is_right) == (True, True)


def test_the_snapshot_tells_the_state_and_the_outcome() -> None:
    command = Command("jb_1", "d")
    command.apply(Allow())
    assert command.snapshot().started is Started.NO
    command.apply(Begin(pid=7))
    assert (command.snapshot().started, command.snapshot().pid) == (Started.YES, 7)
    outcome = Outcome(ending=Ending.EXITED, started=Started.YES, number=0)
    command.apply(End(outcome=outcome))
    assert (command.snapshot().state, command.snapshot().outcome) == (State.FINAL, outcome)
    with pytest.raises(IllegalMoveError):
        command.apply(Begin(pid=8))
