from __future__ import annotations

import pytest

from upright.core.errors import (
    CoreError,
    IllegalMoveError,
    InvalidError,
    StaleError,
    TranscriptError,
)


def test_the_class_is_the_sentence_and_the_data_says_what() -> None:
    error = InvalidError(field="deadline_s", value=0)
    assert str(error) == "A value is out of its bounds: field deadline_s, value 0"
    assert error.data == {"field": "deadline_s", "value": 0}


def test_without_data_the_sentence_stands_alone() -> None:
    assert str(CoreError()) == "Something is not allowed"


def test_an_error_without_a_sentence_says_its_code() -> None:
    class BareError(CoreError):
        code = "core.bare"

    assert str(BareError(item="wk_1")) == "core.bare: item wk_1"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (CoreError, "core.error"),
        (IllegalMoveError, "core.illegal_move"),
        (StaleError, "core.stale"),
        (TranscriptError, "core.transcript"),
        (InvalidError, "core.invalid"),
    ],
)
def test_each_kind_has_a_code_of_its_own(kind: type[CoreError], code: str) -> None:
    assert kind.code == code
    assert issubclass(kind, CoreError)
