"""Schedules: when a line is due, as pure functions of the last time and the anchor.

A cron line in a zone follows Debian's rules (cronsim): at a fixed hour it runs once on the day on
which the clocks go back, and at the end of the gap on the day on which they go forward; one with a
star in it keeps its pace through both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

from cronsim import CronSim, CronSimError

from upright.kit.calendar.moments import instant

MIN_EVERY: Final = timedelta(seconds=1)
MAX_EVERY: Final = timedelta(days=3_660)
_ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_SPAN: Final = re.compile(r"(every|after)\s+(\d{1,7})\s*([a-z]+)", re.IGNORECASE)
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNIT: Final = re.compile(
    r"s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|d(?:ays?)?", re.IGNORECASE
)
_FORMS: Final = (
    'a cron line ("30 9 * * 1-5", "@daily"), "every 15 minutes", "after 20 minutes" or '
    '"at 2026-12-24 18:00"'
)


class Schedule(Protocol):
    """When a line is due. All instants are aware and in UTC."""

    def after(self, at: datetime, anchor: datetime) -> datetime | None:
        """Return the first time later than *at*; None when there is none.

        *anchor* is when the line was first seen: intervals are counted from it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron line of five fields, or of six with seconds first."""

    expression: str
    zone: tzinfo

    def after(self, at: datetime, anchor: datetime) -> datetime | None:
        """Return the next time; None when it has none within fifty years."""
        del anchor  # the calendar decides
        for due in CronSim(self.expression, at.astimezone(self.zone)):
            # In the hour that comes twice, cronsim may name its first pass again.
            if (found := due.astimezone(UTC)) > at:
                return found
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """An interval of elapsed time, whatever the local clocks do."""

    period: timedelta

    def after(self, at: datetime, anchor: datetime) -> datetime | None:
        """Return the next whole period after the anchor."""
        return anchor + self.period * (max((at - anchor) // self.period, 0) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """One moment, or one span after the line was first seen."""

    at: datetime | None = None
    span: timedelta = timedelta()

    def after(self, at: datetime, anchor: datetime) -> datetime | None:
        """Return the moment while it is ahead."""
        due = self.at or anchor + self.span
        return due if due > at else None


def parse(when: str, zone: tzinfo) -> Schedule:
    """Read a line's ``when``.

    Raises:
        ValueError: it is none of the forms, or never due; the message says so in one sentence.
    """
    text = " ".join(when.split())
    if found := _SPAN.fullmatch(text):
        span = timedelta(seconds=int(found[2]) * _seconds(found[3], when))
        if not MIN_EVERY <= span <= MAX_EVERY:
            problem = f"{when!r} must be between a second and ten years"
            raise ValueError(problem)
        return Every(period=span) if found[1].lower() == "every" else Once(span=span)
    if text.lower().startswith("at "):
        return Once(at=_moment(text[3:], zone))
    return _cron(_ALIASES.get(text.lower(), text), zone)


def upcoming(
    schedule: Schedule, at: datetime, anchor: datetime, *, count: int = 5
) -> list[datetime]:
    """Return the next times, at most *count*, for people to look at."""
    found: list[datetime] = []
    for due in times(schedule, at, anchor):
        found.append(due)
        if len(found) == count:
            break
    return found


def times(schedule: Schedule, at: datetime, anchor: datetime) -> Iterator[datetime]:
    """Yield all times later than *at*, in order."""
    due = schedule.after(at, anchor)
    while due is not None:
        yield due
        due = schedule.after(due, anchor)


def _seconds(unit: str, when: str) -> int:
    if not _UNIT.fullmatch(unit):
        problem = f"{when!r}: {unit!r} is no unit; take seconds, minutes, hours or days"
        raise ValueError(problem)
    return _UNITS_S[unit[0].lower()]


def _moment(text: str, zone: tzinfo) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        problem = f"'at {text}' must name a moment, as in 'at 2026-12-24 18:00'"
        raise ValueError(problem) from error
    return instant(at, zone)


def _cron(text: str, zone: tzinfo) -> Cron:
    cron = Cron(expression=text, zone=zone)
    try:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        due = cron.after(start, start)
    except CronSimError as error:
        problem = f"{text!r} is none of these: {_FORMS} ({error})"
        raise ValueError(problem) from error
    if due is None:
        problem = f"{text!r} is never due"
        raise ValueError(problem)
    return cron
