"""Comments: one text as parts that fit, each with a hidden marker by which it is found again.

The marker is the last line of a comment, ``<!-- upright:KEY PART/PARTS -->``. It is what makes
sending idempotent at a service that has no idempotency keys of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from upright.kit.marker import Mark, escape

MAX_BODY_CHARS: Final = 65_536  # GitHub: "Body is too long (maximum is 65536 characters)"
MAX_PARTS: Final = 10
_ROOM: Final = 600  # for the number of the part, a fence closed and opened anew, and the marker
_FENCE: Final = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)


def compose(text: str, key: str) -> tuple[tuple[Mark, str], ...]:
    """Return the comments that carry a text, whole and in order.

    Raises:
        ValueError: there is nothing to say, or it would take more than ten comments.
    """
    if not text.strip():
        raise ValueError("An empty comment can't be sent")
    pieces = _split(text, MAX_BODY_CHARS - _ROOM)
    if len(pieces) > MAX_PARTS:
        reason = f"The text has {len(text)} characters: more than {MAX_PARTS} comments hold"
        raise ValueError(reason)
    marks = [Mark(escape(key), index, len(pieces)) for index in range(1, len(pieces) + 1)]
    return tuple(
        (mark, f"{_heading(mark)}{piece}\n\n{mark}")
        for mark, piece in zip(marks, pieces, strict=True)
    )


def _heading(mark: Mark) -> str:
    return f"({mark.part}/{mark.parts})\n\n" if mark.parts > 1 else ""


def _split(text: str, size: int) -> Sequence[str]:
    """Cut at an empty line, a line or a blank; a fence that is open is closed and opened anew."""
    pieces, rest = list[str](), text
    while len(rest) > size:
        cut = _cut(rest, size)
        piece, rest = rest[:cut], rest[cut:].lstrip("\n")
        if fence := _open_fence(piece):
            mark, info = fence
            piece, rest = f"{piece.rstrip()}\n{mark}", f"{mark}{info}\n{rest}"
        pieces.append(piece.rstrip())
    return [*pieces, rest]


def _cut(text: str, size: int) -> int:
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, size // 2, size)
        if at > 0:
            return at + len(separator)
    return size


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the mark and the language of a code block that the text leaves open."""
    found: tuple[str, str] | None = None
    for hit in _FENCE.finditer(text):
        if found is None:
            found = (hit["mark"], hit["info"][:100])
        elif hit["mark"].startswith(found[0]) and not hit["info"].strip():
            found = None
    return found
