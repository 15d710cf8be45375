"""Another library's view of the same calendars; runs in the servers' environment, not in ours.

stdin: JSON ``[[path, since, until], …]`` (UTC, ISO); stdout: JSON, per path ``{"events": [[uid,
start], …]}`` or ``{"error": …}``. Starts are UTC (``20260101T120000Z``) or dates (``20260101``).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events
import x_wr_timezone

ITS_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def starts(path: str, since: datetime, until: datetime) -> list[list[str]]:
    found: list[list[str]] = []
    for calendar in icalendar.Calendar.from_ical(Path(path).read_bytes(), multiple=True):
        zoned = x_wr_timezone.to_standard(calendar)
        query = recurring_ical_events.of(zoned, skip_bad_series=True)
        within = query.between(since, until)
        found += [[str(each["UID"]), spelled(each["DTSTART"].dt)] for each in within]
    return sorted(found)


def spelled(at: date) -> str:
    if not isinstance(at, datetime):
        return f"{at:%Y%m%d}"
    if at.tzinfo is None:
        at = at.replace(tzinfo=ZoneInfo("Europe/Lisbon"))
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def main() -> None:
    said: dict[str, Any] = {}
    for path, since, until in json.load(sys.stdin):
        window = (datetime.fromisoformat(since), datetime.fromisoformat(until))
        try:
            said[path] = {"events": starts(path, *window)}
        except ITS_ERRORS as error:
            said[path] = {"error": f"{type(error).__name__}: {error}"}
    json.dump(said, sys.stdout)


main()
