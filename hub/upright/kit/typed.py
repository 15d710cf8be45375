"""Typed: what somebody wrote, without the mention of us that it begins with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_AFTER: Final = ":,"


def without_mention(text: str, names: Iterable[str]) -> str:
    """Return a text without one of our *names* at its start, and the colon or comma behind it.

    A name counts as a whole word: *helper* does not begin *helpers, approve*.
    """
    said = text.strip()
    for name in sorted(filter(None, names), key=len, reverse=True):
        rest = said[len(name) :]
        if said[: len(name)].lower() != name.lower():
            continue
        if rest[:1] and (rest[0] in _AFTER or rest[0].isspace()):
            return rest.lstrip(_AFTER).strip()
    return said
