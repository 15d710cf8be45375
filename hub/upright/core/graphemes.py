"""Graphemes: where a text may be cut so that what a reader sees as one character stays whole.

A small part of Unicode's rules (UAX #29): marks, joiners, selectors and skin tones stay with what
they stand behind, flags are pairs, Korean syllables are not taken apart. No library is worth its
weight for a place to cut at.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_JOINER: Final = "\u200d"
_MODIFIERS: Final = ("\U0001f3fb", "\U0001f3ff")  # skin tones, first and last
_TAGS: Final = ("\U000e0020", "\U000e007f")  # of flags of regions
_FLAGS: Final = ("\U0001f1e6", "\U0001f1ff")
_KOREAN_FIRST: Final = ("\u1100", "\u115f")
_KOREAN_REST: Final = ("\u1160", "\u11ff")
LONGEST: Final = 64
"""So many characters are looked back at most: longer heaps of marks are cut through."""


def boundary(text: str, at: int) -> int:
    """Return the last place up to *at* where nothing is torn; *at* itself where nothing can be."""
    if at >= len(text):
        return len(text)
    found = at
    while found > max(at - LONGEST, 0) and _joins(text, found):
        found -= 1
    return at if found == at - LONGEST else found


def beginning(text: str, count: int) -> str:
    """Return at most the first *count* characters of a text."""
    return text[: boundary(text, count)]


def _joins(text: str, at: int) -> bool:
    """Say whether the characters before and behind *at* belong together."""
    before, behind = text[at - 1], text[at]
    if _JOINER in {before, behind}:
        return True
    if before == "\r" and behind == "\n":
        return True
    if unicodedata.category(behind).startswith("M") or _in(behind, _MODIFIERS, _TAGS):
        return True
    if _in(behind, _KOREAN_REST):
        return _in(before, _KOREAN_FIRST, _KOREAN_REST) or "\uac00" <= before <= "\ud7a3"
    return _in(before, _FLAGS) and _in(behind, _FLAGS) and _flags_before(text, at) % 2 == 1


def _flags_before(text: str, at: int) -> int:
    """Count the letters of flags that stand right before *at*."""
    count = 0
    while count < at and _in(text[at - 1 - count], _FLAGS):
        count += 1
    return count


def _in(one: str, *ranges: tuple[str, str]) -> bool:
    return any(first <= one <= last for first, last in ranges)
