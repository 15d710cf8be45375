"""Zones: what a TZID means, whoever wrote it.

In this order: a bare offset such as ``(GMT +01:00)``; an IANA name, also at the end of a longer
one; a name of Windows; the VTIMEZONE that the file itself brings; at last the user's zone, with a
remark. A known name goes before the file's own rules, because those are often years old.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.tz import tzical
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from upright.kit.calendar.lines import Component

_RULES: Final = frozenset({"DTSTART", "RRULE", "RDATE", "TZOFFSETFROM", "TZOFFSETTO", "TZNAME"})
_UTC_NAMES: Final = frozenset({"utc", "gmt", "etc/utc", "etc/gmt", "z", "(utc)", "zulu"})
MAX_ZONES: Final = 200
_KEY: Final = re.compile(r"[A-Za-z][\w+-]*(?:/[A-Za-z][\w+-]*){0,2}", re.ASCII)
_OFFSET: Final = re.compile(
    r"\(?(?:GMT|UTC)\s*([+-])(\d{1,2})(?:[:.]?([0-5]\d))?\)?", re.ASCII | re.IGNORECASE
)


class Zones:
    """The zones of one file. ``user`` is where the user lives; ``unknown`` collects what is not."""

    def __init__(self, user: tzinfo, calendar: Component | None = None) -> None:
        self.user = user
        self.unknown: list[str] = []
        self._own: dict[str, Component] = {}
        self._known: dict[str, tzinfo] = {}
        for part in list(calendar.within("VTIMEZONE"))[:MAX_ZONES] if calendar else ():
            self._own.setdefault(part.text("TZID"), part)

    def find(self, name: str) -> tzinfo:
        """Return the zone of a TZID; the user's when nobody knows it."""
        name = name.strip()
        if name not in self._known:
            zone = named(name) or self._by_rules(name)
            if zone is None:
                self.unknown.append(name)
            self._known[name] = zone or self.user
        return self._known[name]

    def _by_rules(self, name: str) -> tzinfo | None:
        own = self._own.get(name)
        if own is None:
            return None
        location = own.text("X-LIC-LOCATION")
        return (named(location) if location else None) or _compiled(own)


def named(name: str) -> tzinfo | None:
    """Return the zone that a name means by itself: IANA's, one that ends in such, or Windows'."""
    if name.strip().lower() in _UTC_NAMES:
        return UTC
    if (offset := _OFFSET.fullmatch(name.strip())) is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-span if offset[1] == "-" else span) if span < timedelta(days=1) else None
    for each in _candidates(name.strip()):
        if not _KEY.fullmatch(each):
            continue
        try:
            return ZoneInfo(each)
        except (KeyError, ValueError, OSError):
            continue  # no such file, or a folder of them
    return None


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield WINDOWS_TO_OLSON.get(name, "")
    yield _ANY_CASE.get(name.lower(), "")
    parts = name.split("/")
    for count in (3, 2):  # as in /example.org/2026/America/Argentina/Salta
        yield "/".join(parts[-count:])


def _compiled(own: Component) -> tzinfo | None:
    """Make a zone of a VTIMEZONE's rules; None when they can't be followed."""
    text = "\r\n".join(_clean(own))
    try:
        zone: tzinfo | None = tzical(io.StringIO(text)).get()
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError, KeyError):
        return None  # dateutil's reader has no one error of its own; the TZID becomes a remark
    return zone


def _clean(own: Component) -> Iterator[str]:
    """Spell a VTIMEZONE anew, with nothing in it that dateutil refuses."""
    yield from ("BEGIN:VTIMEZONE", "TZID:own")
    for part in own.parts:
        if part.name not in {"STANDARD", "DAYLIGHT"}:
            continue
        yield f"BEGIN:{part.name}"
        for line in part.lines:
            if line.name in _RULES:
                yield f"{line.name}:{_naive(line.value) if line.name != 'TZNAME' else 'x'}"
        yield f"END:{part.name}"
    yield "END:VTIMEZONE"


def _naive(value: str) -> str:
    """Return a rule with local times only: an UNTIL in UTC is hours off, once, long ago."""
    return value.strip().upper().replace("Z", "")


_ANY_CASE: Final = {name.lower(): olson for name, olson in WINDOWS_TO_OLSON.items()}
