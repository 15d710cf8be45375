"""Copies: what a calendar holds right now, by the key of each series; how it is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from zoneinfo import ZoneInfo

from upright.kit.calendar.event import Calendar, Event
from upright.kit.calendar.occur import series
from upright.kit.calendar.reader import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """All components of one UID, as the calendar has them; ``raw`` is where they stood."""

    uid: str
    events: tuple[Event, ...]
    raw: bytes = b""
    place: str = ""  # the calendar's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look at everything. ``unread`` are the keys of what is there and can't be read."""

    copies: Mapping[str, Copy]
    unread: frozenset[str] = frozenset()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found about the server, for people."""

    summary: str
    names: tuple[str, ...] = field(default=())


class Shelf(Protocol):
    """Where a calendar is looked at: a CalDAV server, or a feed."""

    async def find(self) -> Found:
        """Look what is there, without reading the events."""
        ...

    async def look(self) -> Look | None:
        """Return what is there; None when nothing changed since the last look.

        Raises:
            ConnectorNotReadyError: it can't be read now; what was known stands.
            ConnectorAuthFailedError: the credentials are refused.
        """
        ...


async def parsed(data: bytes, zone: ZoneInfo) -> Calendar:
    """Read iCalendar text beside the loop: a large one takes seconds."""
    return await asyncio.to_thread(read, data, user_zone=zone)


def grouped(calendar: Calendar) -> dict[str, tuple[Event, ...]]:
    """Return the events of each UID; the newest copy of each instance."""
    return {uid: tuple(events) for uid, events in series(calendar.events).items()}


def troubles_of(calendar: Calendar, where: str) -> Iterable[str]:
    """Say what of a calendar could not be read."""
    for broken in calendar.broken:
        yield f"{where}: {broken.uid or 'a part without UID'}: {broken.why}"
