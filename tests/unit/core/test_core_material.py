from __future__ import annotations

import json
import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.mandate import Trust
from upright.core.material import block, escaped, tamed, tool_result, visible

JOINERS: Final = "\u200c\u200d"  # emoji and several scripts can't be written without them
VISIBLE_FORMAT: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
LOOKS_ALIKE: Final = "\u2039\u203a\u276e\u276f\u2770\u2771\u27e8\u27e9\u3008\u3009\u1438\u1433"
ANY_TEXT: Final = st.text(st.characters(exclude_categories=[]))


def every(*categories: str) -> list[str]:
    """Return all characters of some categories."""
    return [
        one
        for one in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(one) in categories
    ]


@pytest.mark.clause("B14.1")
def test_what_ends_a_line_or_controls_is_written_as_an_escape() -> None:
    raw = [one for one in every("Cc", "Zl", "Zp", "Cs") if one in escaped(one)]
    assert raw == []


@pytest.mark.clause("B14.1")
def test_what_hides_or_turns_the_direction_is_written_as_an_escape() -> None:
    shown = {one for one in every("Cf") if one in escaped(one)}
    notation = {
        one
        for one in shown
        if unicodedata.name(one).startswith(("EGYPTIAN", "SHORTHAND", "MUSICAL"))
    }
    assert shown - notation == {*JOINERS, *VISIBLE_FORMAT}


@pytest.mark.clause("B14.1")
def test_what_looks_like_an_angle_bracket_is_written_as_an_escape() -> None:
    wide = [
        one
        for one in map(chr, range(sys.maxunicode + 1))
        if unicodedata.normalize("NFKC", one) in {"<", ">"}
    ]
    assert len(wide) >= 4
    assert [one for one in [*wide, *LOOKS_ALIKE] if one in escaped(one)] == []


@pytest.mark.clause("B14.1")
@given(text=ANY_TEXT)
def test_a_block_is_one_line_that_reads_back_as_it_was(text: str) -> None:
    lines = block("tr_1", Trust.STRANGER, {"text": text}).splitlines()
    assert (lines[0], lines[2:]) == ('<material of="tr_1" trust="stranger">', ["</material>"])
    assert json.loads(lines[1]) == json.loads(json.dumps({"text": text}))


@pytest.mark.clause("B14.1")
@given(text=ANY_TEXT)
def test_what_a_tool_answers_is_one_line_in_a_block_of_its_own(text: str) -> None:
    said = json.dumps({"stdout": text}, ensure_ascii=False)
    lines = tool_result(said).splitlines()
    assert (lines[0], lines[2:]) == ('<material of="tool result">', ["</material>"])
    assert json.loads(lines[1]) == json.loads(said)
    assert tamed(tamed(said)) == tamed(said)


def test_what_people_write_every_day_stays_readable() -> None:
    said = '«Bonjour» 《三体》 नमस्ते می‌خواهم 👩‍👩‍👧 ☺️ it\'s 5 % [ok] {x} "q"'
    assert json.loads(escaped(said)) == said
    assert escaped(said) == json.dumps(said, ensure_ascii=False)


@pytest.mark.clause("B14.3")
def test_people_see_what_hides_or_turns_and_everything_else_as_it_is() -> None:
    assert visible("pay \u202e001\u202c\u200b now") == "pay \\u202e001\\u202c\\u200b now"
    assert visible("a < b\n\t\u300a\u4e09\u300b") == "a < b\n\t\u300a\u4e09\u300b"
    assert visible("\x1b[2Jgone\x00\r\n") == "\\u001b[2Jgone\\u0000\r\n"
    assert visible("\U000e0041") == "\\udb40\\udc41"
