from __future__ import annotations

from typing import Final

import pytest

from fixtures.laws import law, named, pairs, states
from upright.core.errors import IllegalMoveError
from upright.core.request import (
    TRANSITIONS,
    Answered,
    RequestEvent,
    RequestKind,
    RequestState,
    TimePassed,
    names,
    step,
)

# A4: asked, then answered, expired or withdrawn; B14.3: the first answer wins, expiry is no yes.
LAW: Final = """
    asked: Answered>answered TimePassed>expired Withdrawn>withdrawn
    answered
    expired
    withdrawn
"""


@pytest.mark.clause("B14.3")
@pairs(RequestState, RequestEvent)
def test_a_request_moves_as_the_law_says_and_not_otherwise(
    state: RequestState, event: type[RequestEvent]
) -> None:
    after = law(LAW).get((state.value, event.__name__))
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(state, event())
    else:
        assert step(state, event()) == after


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)
    assert states(LAW) == set(RequestState)


@pytest.mark.clause("B14.3")
def test_an_answer_that_comes_after_the_expiry_changes_nothing() -> None:
    expired = step(RequestState.ASKED, TimePassed())
    with pytest.raises(IllegalMoveError):
        step(expired, Answered())


@pytest.mark.clause("B14.3")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("", False),
        ("4f2a91c", False),
        ("4f2a91c0", True),
        ("4f2a91c07d", True),
        ("4f2a91c1", False),
    ],
)
def test_a_digest_is_named_by_its_first_eight_digits_or_more(given: str, *, named: bool) -> None:
    assert names(given, "4f2a91c07d") is named


def test_a_person_is_asked_for_five_kinds_of_things() -> None:
    assert set(RequestKind) == {"pairing", "approval", "question", "device", "acceptance"}
