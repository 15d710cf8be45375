"""Excerpts: the first lines of a long text, and where the rest can be read."""

from __future__ import annotations

from typing import Final

MAX_CHARS: Final = 8_000
MAX_LINES: Final = 200


def excerpt(text: str, *, where: str) -> str:
    """Return the first whole lines of a long text, at most 200 lines and 8 000 characters.

    What is left out is counted, and it is said where to read it. Only a first line that is too
    long by itself is cut inside.
    """
    whole = text.strip()
    kept, size = list[str](), 0
    for line in whole.splitlines(keepends=True)[:MAX_LINES]:
        if kept and size + len(line) > MAX_CHARS:
            break
        kept.append(line[:MAX_CHARS])
        size += len(kept[-1])
    if size == len(whole):
        return whole
    head = "".join(kept).rstrip()
    return f"{head}\n[{len(whole) - size} more characters: {where or 'see the payload'}]"
