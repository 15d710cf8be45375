from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright_execd import shown


@pytest.mark.clause("E8.4")
@given(st.lists(st.text()))
def test_what_is_shown_is_plain_printable_ascii_and_says_exactly_the_argv(parts: list[str]) -> None:
    text = shown.argv(parts)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == parts


@pytest.mark.clause("E8.4")
def test_a_boundary_between_arguments_cannot_be_faked() -> None:
    assert shown.argv(['a", "b']) != shown.argv(["a", "b"])


def test_the_delete_character_is_visible() -> None:
    assert shown.text("a\x7f") == '"a\\u007f"'
