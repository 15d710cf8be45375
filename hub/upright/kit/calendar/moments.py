"""Moments: dates, times and durations as iCalendar spells them (RFC 5545, section 3.3)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

_MOMENT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?", re.ASCII)
_DURATION: Final = re.compile(
    r"([+-])?PT?(?:(\d{1,6})W)?(?:(\d{1,6})D)?T?(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?",
    re.ASCII,
)


class MomentError(ValueError):
    """Something is no date, time or duration."""


def moment(text: str) -> date | datetime:
    """Read a DATE, or a DATE-TIME: in UTC it is aware, otherwise naive, to be given its zone.

    Raises:
        MomentError: it is neither.
    """
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        problem = f"{text[:40]!r} is no date"
        raise MomentError(problem)
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        if found[4] is None:
            return date(year, month, day)
        # a leap second is the last one of its minute
        zone = UTC if found[7] else None
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
    except ValueError as error:
        problem = f"{text[:40]!r} is no date: {error}"
        raise MomentError(problem) from error


def duration(text: str) -> timedelta:
    """Read a DURATION; a T that is missing or too much does no harm.

    Raises:
        MomentError: it is none.
    """
    found = _DURATION.fullmatch(text.strip().upper())
    if found is None or not any(found.groups()[1:]):
        problem = f"{text[:40]!r} is no duration"
        raise MomentError(problem)
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    span = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -span if found[1] == "-" else span


def instant(at: date | datetime, zone: tzinfo) -> datetime:
    """Return the instant in UTC; a date is the midnight that it begins with, in *zone*.

    In a gap of the clock the offset before it counts, in a fold the first of both (RFC 5545,
    3.3.5), which is what ``fold=0`` means.
    """
    if not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day, tzinfo=zone)
    elif at.tzinfo is None:
        at = at.replace(tzinfo=zone)
    return at.astimezone(UTC)


def spelled(at: date | datetime) -> str:
    """Spell a DATE, or an instant in UTC: the one form in which keys are compared."""
    if isinstance(at, datetime):
        return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    return f"{at:%Y%m%d}"
