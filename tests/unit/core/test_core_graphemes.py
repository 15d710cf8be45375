"""Graphemes: a cut tears nothing that a reader sees as one character (B7.3)."""

from __future__ import annotations

import pytest

from upright.core.graphemes import LONGEST, beginning, boundary

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WAVE = "\U0001f44b\U0001f3fd"
WALES = "\U0001f3f4\U000e0067\U000e0062\U000e007f"
HEART = "\u2764\ufe0f"
ACCENT = "e\u0301\u0323"
SYLLABLE = "\u1112\u1161\u11ab"
PRECOMPOSED = "\uac00\u11a8"
FLAG = "\U0001f1e9\U0001f1ea"


@pytest.mark.clause("B7.3")
@pytest.mark.parametrize(
    "whole", [FAMILY, WAVE, WALES, HEART, ACCENT, SYLLABLE, PRECOMPOSED, FLAG, "\r\n", "क्षि"]
)
def test_what_is_seen_as_one_character_is_kept_or_left_as_one(whole: str) -> None:
    text = f"ab{whole}cd"
    for at in range(3, 2 + len(whole)):
        assert boundary(text, at) == 2 or text[: boundary(text, at)].endswith("\u094d")
    assert boundary(text, 2) == 2
    assert boundary(text, 2 + len(whole)) == 2 + len(whole)


@pytest.mark.clause("B7.3")
def test_flags_are_pairs_and_cjk_is_cut_anywhere() -> None:
    assert boundary(f"x{FLAG}{FLAG}", 4) == 3
    assert boundary(f"x{FLAG}{FLAG}", 3) == 3
    assert beginning("漢字かな交じり文", 3) == "漢字か"


def test_a_vowel_without_its_consonant_stands_alone() -> None:
    assert boundary("x\u1161", 1) == 1


def test_a_cut_behind_the_end_is_the_end() -> None:
    assert boundary("abc", 3) == boundary("abc", 9) == 3


def test_a_heap_of_marks_is_cut_through() -> None:
    heap = "e" + "\u0301" * (3 * LONGEST)
    assert boundary(heap, 2 * LONGEST) == 2 * LONGEST
    assert boundary("\u0301\u0301", 1) == 0
