"""Watch: which lines of a running job's output are worth a wake (B10.5); linear in the text.

A pattern with ``*`` or ``?`` is a glob of the whole line; any other is looked for inside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from upright.core.errors import InvalidError

MAX_PATTERN: Final = 200
MAX_LINE_BYTES: Final = 16 * 1024
"""A line that is longer is looked at in pieces of this size."""
MAX_FIRED: Final = 20
"""So often a watch reports; then it says once that it stops."""
MIN_EVERY_S: Final = 10
SHOWN_LINES: Final = 20
SHOWN_CHARS: Final = 300


def check_pattern(pattern: str) -> None:
    """Raise InvalidError for a pattern that no line can match, or that is too long."""
    if len(pattern) > MAX_PATTERN or "\n" in pattern or "\r" in pattern:
        raise InvalidError(field="pattern", most=MAX_PATTERN)


def matches(pattern: str, line: str) -> bool:
    """Say whether a line matches; no pattern makes this slow."""
    if "*" not in pattern and "?" not in pattern:
        return pattern in line
    first, *middle = pattern.split("*")
    if not middle:
        return len(line) == len(first) and _fits(first, line, 0)
    last = middle.pop()
    end = len(line) - len(last)
    if end < len(first) or not _fits(first, line, 0) or not _fits(last, line, end):
        return False
    at = len(first)
    for part in middle:
        found = _find(part, line, at, end)
        if found is None:
            return False
        at = found + len(part)
    return True


def _fits(part: str, line: str, at: int) -> bool:
    return all(want in {"?", have} for want, have in zip(part, line[at:], strict=False))


def _find(part: str, line: str, at: int, end: int) -> int | None:
    """Return the first place of *part* that ends before *end*."""
    return next((n for n in range(at, end - len(part) + 1) if _fits(part, line, n)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The matching lines, and how many bytes were looked at; the rest is looked at again."""

    lines: tuple[str, ...]
    bytes: int


def look(pattern: str, data: bytes, *, is_last: bool) -> Seen:
    """Look at the whole lines of *data*; of the last, unended one only when nothing will follow."""
    cut = len(data) if is_last else _end_of_lines(data)
    text = data[:cut].replace(b"\r", b"\n").decode(errors="replace")
    lines = (line for line in text.split("\n") if line)
    return Seen(lines=tuple(line for line in lines if matches(pattern, line)), bytes=cut)


def _end_of_lines(data: bytes) -> int:
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return end if end or len(data) < MAX_LINE_BYTES else len(data)


def shown(lines: tuple[str, ...]) -> str:
    """Return what a trigger says of its lines: the first ones, each within a bound."""
    kept = [line[:SHOWN_CHARS] for line in lines[:SHOWN_LINES]]
    more = len(lines) - len(kept)
    return "\n".join([*kept, f"[…and {more} more lines that match]"] if more else kept)
