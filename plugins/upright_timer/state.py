"""State: up to when each line was handled; what the cursor of a timer source holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

VERSION: Final = 1


class CursorLostError(ValueError):
    """The cursor can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One line's state.

    ``anchor``: when it was first seen. ``done``: the last due time that is settled. ``era`` counts
    how often the clock was set back so far that its times began anew.
    """

    version: str
    anchor: datetime
    done: datetime
    era: int = 0

    def again(self, now: datetime) -> Mark:
        """Return the mark of a line whose times begin anew."""
        return replace(self, anchor=now, done=now, era=self.era + 1)


def decode(cursor: str) -> dict[str, Mark]:
    """Read a cursor.

    Raises:
        CursorLostError: it is none of this version.
    """
    try:
        plain: Any = json.loads(cursor)
        if plain["v"] != VERSION:
            problem = f"it is of version {plain['v']}"
            raise CursorLostError(problem)
        return {str(name): _mark(row) for name, row in plain["lines"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CursorLostError(str(error)) from error


def encode(marks: Mapping[str, Mark]) -> str:
    """Write a cursor."""
    lines = {
        name: [mark.version, mark.anchor.isoformat(), mark.done.isoformat(), mark.era]
        for name, mark in marks.items()
    }
    return json.dumps({"v": VERSION, "lines": lines}, separators=(",", ":"))


def _mark(row: list[Any]) -> Mark:
    version, anchor, done, era = row
    at, upto = datetime.fromisoformat(anchor), datetime.fromisoformat(done)
    if at.tzinfo is None or upto.tzinfo is None:
        raise CursorLostError("a time in it has no zone")
    return Mark(version=str(version), anchor=at, done=upto, era=int(era))
