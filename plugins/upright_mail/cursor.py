"""Cursor: how far each folder was read, in a form that survives a renumbering (RFC 9051, 2.3.1.1).

A folder's numbers hold as long as its UIDVALIDITY does. For the day on which they don't, the mark
keeps digests of the newest Message-IDs that were handled, and the time of the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Final

from upright.kit.calendar.itip import Memory
from upright_mail.keys import digest

VERSION: Final = 1
KEPT_IDS: Final = 128


def id_digest(message_id: str) -> str:
    """Return what a mark keeps of a Message-ID."""
    return digest(message_id, 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a folder was read: all up to ``uid`` under ``validity``.

    ``at``: the server's time of the newest mail, as an epoch; ``ids``: of the newest, oldest first.
    """

    validity: int
    uid: int
    at: int = 0
    ids: tuple[str, ...] = ()

    def beyond(self, uid: int, at: datetime | None, message_id: str) -> Mark:
        """Return the mark behind one more mail."""
        ids = (*self.ids, id_digest(message_id)) if message_id else self.ids
        when = int(at.astimezone(UTC).timestamp()) if at else 0
        return replace(self, uid=max(uid, self.uid), at=max(self.at, when), ids=ids[-KEPT_IDS:])


def dump(marks: Mapping[str, Mark], meetings: Memory) -> str:
    """Write the marks of all folders, and what is known of meetings."""
    folders = {name: asdict(mark) for name, mark in sorted(marks.items())}
    told = {"v": VERSION, "folders": folders, "meetings": meetings.plain()}
    return json.dumps(told, separators=(",", ":"))


def load(text: str) -> tuple[dict[str, Mark], Memory]:
    """Read what :func:`dump` wrote.

    Raises:
        ValueError: it is something else.
    """
    try:
        told = json.loads(text)
        if told["v"] != VERSION:
            raise ValueError("another version's cursor")
        marks = {str(name): _mark(one) for name, one in told["folders"].items()}
        return marks, Memory.read(told["meetings"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no cursor of this connector") from error


def _mark(told: Mapping[str, object]) -> Mark:
    ids = told["ids"]
    if not isinstance(ids, Iterable):
        raise TypeError("ids must be a list")
    validity, uid, at = (told[name] for name in ("validity", "uid", "at"))
    if not (isinstance(validity, int) and isinstance(uid, int) and isinstance(at, int)):
        raise TypeError("numbers must be numbers")
    return Mark(validity=validity, uid=uid, at=at, ids=tuple(str(one) for one in ids))
