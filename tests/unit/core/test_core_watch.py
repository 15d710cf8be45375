from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.errors import InvalidError
from upright.core.watch import MAX_LINE_BYTES, check_pattern, look, matches, shown


@pytest.mark.clause("B10.5")
@pytest.mark.parametrize(
    ("pattern", "line", "is_one"),
    [
        ("ready", "the server is ready now", True),
        ("ready", "the server is up", False),
        ("", "anything", True),
        ("FAIL*", "FAIL test_a", True),
        ("FAIL*", "no FAIL", False),
        ("*FAIL", "x FAIL", True),
        ("*FAIL", "x FAIL y", False),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "a1c2c", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a?c", "abd", False),
        ("ab*ba", "aba", False),
        ("*b?d*", "abcde", True),
        ("*", "", True),
    ],
)
def test_a_pattern_is_a_part_of_the_line_or_a_glob_of_the_whole(
    pattern: str, line: str, *, is_one: bool
) -> None:
    assert matches(pattern, line) is is_one


@pytest.mark.clause("B10.5")
def test_no_pattern_makes_a_long_line_slow() -> None:
    assert not matches("*a" * 90 + "*b", "a" * 10_000)


@given(st.text(alphabet="ab?*", max_size=6), st.text(alphabet="ab", max_size=8))
def test_a_glob_means_what_the_plain_definition_says(pattern: str, line: str) -> None:
    def plain(p: str, t: str) -> bool:
        if not p:
            return not t
        if p[0] == "*":
            return plain(p[1:], t) or (bool(t) and plain(p, t[1:]))
        return bool(t) and p[0] in {"?", t[0]} and plain(p[1:], t[1:])

    is_glob = "*" in pattern or "?" in pattern
    assert matches(pattern, line) is (plain(pattern, line) if is_glob else pattern in line)


@pytest.mark.parametrize("pattern", ["x" * 201, "a\nb", "a\rb"])
def test_a_pattern_that_no_line_can_match_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidError):
        check_pattern(pattern)


def test_a_pattern_within_its_bounds_is_taken() -> None:
    check_pattern("x" * 200)


@pytest.mark.clause("B10.5")
def test_an_unended_line_is_left_for_the_next_look() -> None:
    seen = look("red", b"a red one\nred and", is_last=False)
    assert (seen.lines, seen.bytes) == (("a red one",), 10)
    assert look("red", b"red and", is_last=False).bytes == 0
    assert look("red", b"red and", is_last=True).lines == ("red and",)


def test_a_progress_bar_is_many_lines() -> None:
    assert look("100%", b"50%\r100%\r", is_last=False).lines == ("100%",)


def test_a_line_without_an_end_is_looked_at_in_pieces() -> None:
    data = b"x" * MAX_LINE_BYTES
    assert look("x", data, is_last=False).bytes == len(data)


def test_what_is_shown_is_bounded_and_says_so() -> None:
    assert shown(("a", "b")) == "a\nb"
    many = shown(tuple("y" * 500 for _ in range(25)))
    assert many.endswith("[…and 5 more lines that match]")
    assert len(many) < 21 * 310
