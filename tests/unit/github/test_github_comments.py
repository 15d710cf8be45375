from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.kit.marker import Mark, escape, mark_of
from upright_github.comments import MAX_BODY_CHARS, compose

LONG = MAX_BODY_CHARS + 1


def test_a_short_text_is_one_comment_with_a_hidden_mark_in_its_last_line() -> None:
    ((mark, body),) = compose("Done.", "ob_1")
    assert body == "Done.\n\n<!-- upright:ob_1 1/1 -->"
    assert mark_of(body) == mark == Mark("ob_1", 1, 1)


@pytest.mark.parametrize("key", ["a--b", "a>b", "a b", "--><script>", "ключ", "x" * 4_000, "%2D"])
def test_no_key_can_end_the_html_comment(key: str) -> None:
    ((mark, body),) = compose("Done.", key)
    inside = body.removeprefix("Done.\n\n<!--").removesuffix("-->")
    assert "--" not in inside
    assert ">" not in inside
    assert mark_of(body) == mark


def test_keys_that_differ_stay_different() -> None:
    keys = ["a-b", "a%2Db", "x" * 300, "x" * 301, "a b", "a%20b"]
    assert len({escape(key) for key in keys}) == len(keys)


def test_a_mark_that_the_text_itself_holds_is_not_taken_for_ours() -> None:
    ((mark, body),) = compose("See <!-- upright:ob_2 1/1 -->", "ob_1")
    assert mark_of(body) == mark
    assert mark_of("<!-- upright:ob_2 1/1 --> and more") is None


@pytest.mark.clause("B15.4")
def test_a_long_text_becomes_numbered_parts_each_with_its_mark() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 200 for number in range(150))
    parts = compose(text, "ob_1")
    assert len(parts) == 3
    assert [mark.part for mark, _ in parts] == [1, 2, 3]
    assert all(len(body) <= MAX_BODY_CHARS for _, body in parts)
    assert [body.splitlines()[0] for _, body in parts] == ["(1/3)", "(2/3)", "(3/3)"]
    assert " ".join(told(parts).split()) == " ".join(text.split())


def told(parts: tuple[tuple[Mark, str], ...]) -> str:
    """Return what people read in the parts."""
    return "\n".join(
        body.removeprefix(f"({mark.part}/{mark.parts})\n\n").removesuffix(f"\n\n{mark}")
        for mark, body in parts
    )


@pytest.mark.clause("B15.4")
def test_a_code_block_that_is_cut_is_closed_and_opened_anew() -> None:
    text = (
        "Log:\n```python\n" + "\n".join(f"line {number}" for number in range(9_000)) + "\n```\nEnd"
    )
    first, second = (body for _, body in compose(text, "ob_1"))
    assert first.count("```") == 2
    assert second.count("```") == 2
    assert second.startswith("(2/2)\n\n```python\n")


@pytest.mark.clause("B15.4")
def test_a_text_without_any_blank_is_cut_all_the_same_and_nothing_is_lost() -> None:
    parts = compose("x" * (3 * LONG), "ob_1")
    assert told(parts).replace("\n", "") == "x" * (3 * LONG)


@given(st.text(st.sampled_from("ab \n`~é😊"), min_size=1, max_size=300).filter(str.strip))
def test_every_text_comes_back_with_its_mark(text: str) -> None:
    parts = compose(text * 700, "ob_1")
    assert all(mark_of(body) == mark and len(body) <= MAX_BODY_CHARS for mark, body in parts)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_nothing_is_no_comment(text: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        compose(text, "ob_1")


@pytest.mark.clause("B15.4")
def test_a_text_for_more_than_ten_comments_is_refused_with_its_size() -> None:
    with pytest.raises(ValueError, match="720896 characters"):
        compose("x" * (11 * MAX_BODY_CHARS), "ob_1")
