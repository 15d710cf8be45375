"""Busy: which meetings stand in the way of a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo

from upright.kit.calendar.event import Event
from upright.kit.calendar.moments import instant
from upright.kit.calendar.occur import Occurrence, Window, occurrences
from upright.kit.calendar.rules import RuleError

DECLINED = "declined"


def conflicts(
    calendar: Mapping[str, Sequence[Event]],
    since: datetime,
    until: datetime,
    *,
    zone: tzinfo,
    besides: str = "",
    mine: Collection[str] = (),
) -> list[Occurrence]:
    """Return what of a calendar (see :func:`occur.series`) takes place between two instants.

    Not in the way: what is free (TRANSPARENT), cancelled, or declined by an address of *mine*, and
    the meeting with the UID *besides*. What only touches an end is none, either.
    """
    found: list[Occurrence] = []
    window = Window(since=since, until=until, zone=zone)
    for uid, copies in calendar.items():
        if uid == besides or not _may_meet(copies, window):
            continue
        try:
            found += [
                each
                for each in occurrences(copies, window)
                if each.start < until and each.end > since and counts(each, mine)
            ]
        except RuleError:
            continue  # whoever keeps the calendar has reported it as broken
    return sorted(found, key=lambda each: (each.start, each.event.uid))


def _may_meet(copies: Sequence[Event], window: Window) -> bool:
    """Tell whether it is worth looking: most events are single, and at another time."""
    if any(event.repeats or event.all_day for event in copies):
        return True
    spans = ((instant(event.start, window.zone), event.length) for event in copies)
    return any(window.meets(start, start + length) for start, length in spans)


def counts(occurrence: Occurrence, mine: Collection[str]) -> bool:
    """Tell whether an occurrence takes up time."""
    event = occurrence.event
    return event.busy and not occurrence.cancelled and not declined(event, mine)


def declined(event: Event, mine: Collection[str]) -> bool:
    """Tell whether one of *mine* said no to an event."""
    return any(who.address in mine and who.answer == DECLINED for who in event.attendees)
