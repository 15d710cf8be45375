"""Shown: argv as a person may safely read it: quoted, and nothing in it poses as what it isn't."""

from __future__ import annotations

import json
from collections.abc import Sequence


def argv(parts: Sequence[str]) -> str:
    """Return argv as a JSON list in plain ASCII.

    Control characters, bidirectional marks and letters that look like others come out as their
    code points: what is read is what runs, and one list has exactly one form.
    """
    return json.dumps(list(parts), ensure_ascii=True).replace("\x7f", "\\u007f")


def value(value: object) -> str:
    """Return a JSON value in the same way."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def text(value: str) -> str:
    """Return one string in the same way: a path, a name."""
    return argv([value])[1:-1]
