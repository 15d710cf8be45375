"""Credit: never more under way than was agreed."""

from __future__ import annotations

import pytest

from upright_wire.command import Stream
from upright_wire.credit import Credit
from upright_wire.errors import CreditError


def credit() -> Credit:
    made = Credit(command_bytes=10, link_bytes=15)
    for name in ("a", "b"):
        made.open(name, Stream.STDOUT, 100)
        made.open(name, Stream.STDERR, 0)
    return made


@pytest.mark.clause("E3.3")
def test_a_command_has_room_for_its_credit_over_both_streams() -> None:
    book = credit()
    book.sent("a", Stream.STDOUT, 104)
    book.sent("a", Stream.STDERR, 3)
    assert book.room("a") == 3
    assert book.offset("a", Stream.STDOUT) == 104


@pytest.mark.clause("E3.3")
def test_the_link_has_a_credit_of_its_own() -> None:
    book = credit()
    book.sent("a", Stream.STDOUT, 110)
    assert (book.room("a"), book.room("b")) == (0, 5)
    book.sent("b", Stream.STDOUT, 105)
    assert book.room("b") == 0


@pytest.mark.clause("E3.3")
def test_an_acknowledgement_gives_room_and_an_old_one_gives_none() -> None:
    book = credit()
    book.sent("a", Stream.STDOUT, 110)
    book.acked("a", Stream.STDOUT, 106)
    book.acked("a", Stream.STDOUT, 103)
    assert (book.room("a"), book.room("b")) == (6, 10)


def test_what_was_never_sent_can_not_be_acknowledged() -> None:
    with pytest.raises(CreditError):
        credit().acked("a", Stream.STDOUT, 101)


def test_acknowledgements_of_unknown_commands_and_streams_are_nothing() -> None:
    book = credit()
    book.acked("z", Stream.STDOUT, 5)
    book.acked("a", Stream.STDIN, 5)
    assert book.room("a") == 10


def test_a_gap_takes_no_credit() -> None:
    book = credit()
    book.sent("a", Stream.STDOUT, 104)
    book.skipped("a", Stream.STDOUT, 1104)
    assert (book.offset("a", Stream.STDOUT), book.room("a")) == (1104, 6)
    book.acked("a", Stream.STDOUT, 1104)
    assert (book.room("a"), book.room("b")) == (10, 10)


def test_a_command_that_is_closed_gives_back_what_it_had_under_way() -> None:
    book = credit()
    book.sent("a", Stream.STDOUT, 110)
    book.close("a")
    book.close("a")
    assert book.room("b") == 10
    book.sent("b", Stream.STDOUT, 110)
    assert book.room("b") == 0
