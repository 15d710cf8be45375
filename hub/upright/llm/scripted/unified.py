"""Unified diffs that ``git apply`` takes, and what they changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

NO_NEWLINE: Final = "\\ No newline at end of file"


def diff(path: str, old: str, new: str) -> str:
    """Return the diff that makes *new* of *old*; empty when they are the same.

    Lines end with LF alone here: a CR belongs to its line, as git sees it.
    """
    hunks = difflib.unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}")
    return "".join(_written(line) for line in hunks)


def changed(patch: str, sign: str) -> str:
    """Return the lines that a diff takes away (``-``) or adds (``+``), stripped, joined by ``; ``.

    The header's own lines are left out.
    """
    return "; ".join(_changed(patch, sign))


def _changed(patch: str, sign: str) -> Iterator[str]:
    for line in patch.split("\n"):
        if line.startswith(sign) and not line.startswith(sign * 3 + " "):
            yield line[1:].strip()


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    kept = [f"{line}\n" for line in lines[:-1]]
    return [*kept, lines[-1]] if lines[-1] else kept


def _written(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n"
