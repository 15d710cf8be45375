"""State: what was told of each series, and up to when moments are settled; the cursor's content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

VERSION: Final = 1
MAX_KNOWN: Final = 5_000
MAX_TITLE_CHARS: Final = 80


class CursorLostError(ValueError):
    """The cursor can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One component as it was told: what it says, who answered what, and its SEQUENCE."""

    said: str
    answers: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One series as it was told.

    ``revision`` counts what was told of it, so that a change back is a change, too. ``ends`` is
    when its last instance ends, epoch seconds; 0: it goes on.
    """

    uid: str
    title: str
    starts: str
    ends: int
    revision: int
    parts: Mapping[str, Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that outlives a restart. ``settled``: every moment up to it was fired, or is past."""

    settled: datetime
    known: Mapping[str, Known] = field(default_factory=dict)

    def encode(self) -> str:
        """Write the cursor."""
        plain = {
            "v": VERSION,
            "settled": self.settled.astimezone(UTC).isoformat(),
            "known": {key: _row(each) for key, each in self.known.items()},
        }
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def decode(cursor: str) -> State:
    """Read a cursor.

    Raises:
        CursorLostError: it is none of this version.
    """
    try:
        plain = _plain(cursor)
        settled = datetime.fromisoformat(plain["settled"]).astimezone(UTC)
        known = {str(key): _known(row) for key, row in plain["known"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CursorLostError(str(error)) from error
    return State(settled=settled, known=known)


def _plain(cursor: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(cursor)
    if plain["v"] != VERSION:
        problem = f"it is of version {plain['v']}"
        raise CursorLostError(problem)
    return plain


def _row(known: Known) -> list[Any]:
    parts = {name: [each.said, each.answers, each.sequence] for name, each in known.parts.items()}
    return [known.uid, known.title, known.starts, known.ends, known.revision, parts]


def _known(row: list[Any]) -> Known:
    uid, title, starts, ends, revision, parts = row
    return Known(
        uid=str(uid),
        title=str(title),
        starts=str(starts),
        ends=int(ends),
        revision=int(revision),
        parts={
            str(name): Part(said=str(said), answers=str(answers), sequence=int(sequence))
            for name, (said, answers, sequence) in parts.items()
        },
    )
