"""Markers: how a text that we sent is found again at a service without idempotency keys.

The last line of a comment is hidden in HTML: ``<!-- upright:KEY PART/PARTS -->`` (B15.2).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

TAIL_CHARS: Final = 600  # in so many last characters of a text its marker stands
_MARKER: Final = re.compile(r"<!-- upright:(?P<key>\S+) (?P<part>\d+)/(?P<parts>\d+) -->\s*\Z")
_MAX_KEY_CHARS: Final = 255


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Which part of which effect a comment is."""

    key: str
    part: int
    parts: int

    def __str__(self) -> str:
        return f"<!-- upright:{self.key} {self.part}/{self.parts} -->"


def escape(key: str) -> str:
    """Return a key that can stand in an HTML comment: no ``--``, no ``>``, no blank, not long."""
    quoted = quote(key, safe="").replace("-", "%2D")
    if len(quoted) <= _MAX_KEY_CHARS:
        return quoted
    return "sha256." + hashlib.sha256(key.encode()).hexdigest()


def mark_of(body: str) -> Mark | None:
    """Return the mark in a comment's last line; a mark quoted elsewhere in the text is none."""
    hit = _MARKER.search(body[-TAIL_CHARS:])
    return Mark(hit["key"], int(hit["part"]), int(hit["parts"])) if hit else None
