"""Moments: when an event's alarms go off, and when it starts and ends. Pure.

They are computed anew from the calendar as it is, so the moment of an event that was moved or
deleted is not there any more. One mark is enough to fire each once: all up to it are settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from upright.kit.calendar.busy import declined
from upright.kit.calendar.event import Alarm
from upright.kit.calendar.occur import Occurrence, Window, occurrences
from upright.kit.calendar.rules import RuleError
from upright_calendar.copies import Copy
from upright_calendar.settings import CalendarSettings

REACH: Final = timedelta(days=8)  # an alarm rings at most so long before the start
LATE_AFTER_S: Final = 60.0
ENDS_UNTIL: Final = timedelta(days=1)  # an end that is told later than this helps nobody
MAX_MOMENTS: Final = 2_000


class Tells(StrEnum):
    """What a moment is."""

    ALARM = "alarm"
    STARTS = "starts"
    ENDS = "ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One moment of one instance."""

    at: datetime
    tells: Tells
    key: str
    occurrence: Occurrence
    copy: Copy
    text: str = ""

    @property
    def native(self) -> str:
        """Return what makes it this moment and no other; a moved instance has another one."""
        one = self.occurrence
        parts = (one.event.uid, one.key, self.tells, self.key, f"{self.at:%Y%m%dT%H%M%SZ}")
        return ":".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Later than ``since``, up to ``until``."""

    since: datetime
    until: datetime


def upcoming(
    copies: Iterable[Copy], span: Span, settings: CalendarSettings, zone: tzinfo
) -> list[Moment]:
    """Return the moments of a span, in their order; MAX_MOMENTS at most.

    None for what is cancelled, declined or can't be followed.
    """
    window = Window(since=span.since - ENDS_UNTIL, until=span.until + REACH, zone=zone)
    found: list[Moment] = []
    for copy in copies:
        try:
            instances = occurrences(copy.events, window)
        except RuleError:
            continue  # told as a trouble of the look
        for each in instances:
            if each.cancelled or declined(each.event, settings.own):
                continue
            found += [
                moment
                for moment in _of(each, copy, settings)
                if span.since < moment.at <= span.until
            ]
    return sorted(found, key=lambda moment: (moment.at, moment.native))[:MAX_MOMENTS]


def is_late(moment: Moment, now: datetime) -> bool:
    """Tell whether a moment passed while nobody looked."""
    return (now - moment.at).total_seconds() > LATE_AFTER_S


def is_over(moment: Moment, now: datetime) -> bool:
    """Tell whether a moment helps nobody any more: a late alarm of an event that has ended."""
    if not is_late(moment, now):
        return False
    if moment.tells is Tells.ENDS:
        return now - moment.at > ENDS_UNTIL
    return moment.occurrence.end <= now


def _of(one: Occurrence, copy: Copy, settings: CalendarSettings) -> Iterator[Moment]:
    if settings.starts:
        yield Moment(at=one.start, tells=Tells.STARTS, key="", occurrence=one, copy=copy)
    if settings.ends and one.end > one.start:
        yield Moment(at=one.end, tells=Tells.ENDS, key="", occurrence=one, copy=copy)
    for alarm in one.event.alarms if settings.alarms else ():
        for number, at in enumerate(_rings(alarm, one)):
            key = f"{alarm.key}#{number}"
            yield Moment(
                at=at, tells=Tells.ALARM, key=key, occurrence=one, copy=copy, text=alarm.text
            )


def _rings(alarm: Alarm, one: Occurrence) -> Iterator[datetime]:
    if alarm.at is None:
        first = (one.end if alarm.from_end else one.start) + alarm.offset
    elif one.event.repeats:
        return  # one instant for a whole series is no alarm of each instance
    else:
        first = alarm.at
    for number in range(alarm.repeats + 1):
        yield first + alarm.every * number
