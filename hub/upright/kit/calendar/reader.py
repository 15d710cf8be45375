"""Reader: iCalendar bytes become events; a broken part costs only itself, and is reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from upright.kit.calendar.event import Alarm, Broken, Calendar, Event, Party, Period, Status
from upright.kit.calendar.lines import Component, Line, tree
from upright.kit.calendar.moments import MomentError, duration, moment
from upright.kit.calendar.zones import Zones, named

MAX_EVENTS: Final = 20_000
MAX_ALARMS: Final = 20
MAX_REPEATS: Final = 10
MAX_DATES: Final = 5_000
MAX_TEXT_CHARS: Final = 20_000


def read(data: bytes, *, user_zone: tzinfo) -> Calendar:
    """Read everything that can be read; never raises, whatever the bytes are.

    *user_zone* is where floating times are meant, and where a zone that nobody knows is put.
    """
    root = tree(data)
    broken = [Broken(uid="", why=why) for why in root.broken]
    events: list[Event] = []
    calendars = list(root.within("VCALENDAR"))
    if not calendars and any(root.parts):
        calendars = [root]  # an event by itself, as in a CalDAV answer or a fragment
    if not calendars:
        broken.append(Broken(uid="", why="there is no VCALENDAR"))
    for calendar in calendars:
        broken += [Broken(uid="", why=why) for why in calendar.broken]
        reading = _Reading.of(calendar, user_zone)
        for part in calendar.within("VEVENT"):
            if len(events) == MAX_EVENTS:
                broken.append(Broken(uid="", why=f"more than {MAX_EVENTS} events"))
                break
            try:
                events.append(reading.event(part))
            except (ValueError, OverflowError) as error:
                broken.append(Broken(uid=part.text("UID"), why=str(error)))
    first = calendars[0] if calendars else root
    return Calendar(
        events=tuple(events),
        broken=tuple(broken),
        method=first.text("METHOD").upper(),
        name=first.text("X-WR-CALNAME"),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """One calendar that is being read: its zones, and the zone of its own (X-WR-TIMEZONE)."""

    zones: Zones
    own: tzinfo | None
    is_message: bool
    remarks: list[str]  # what was wrong with the event under way, and cost no more than itself

    @classmethod
    def of(cls, calendar: Component, user_zone: tzinfo) -> _Reading:
        own = named(calendar.text("X-WR-TIMEZONE"))
        is_message = calendar.text("METHOD").upper() not in {"", "PUBLISH"}
        return cls(Zones(own or user_zone, calendar), own, is_message, [])

    def event(self, part: Component) -> Event:
        """Make an event of a VEVENT.

        Raises:
            MomentError: it does not say when it begins, or which instance it stands for.
        """
        self.remarks.clear()
        line = part.first("DTSTART")
        if line is None and self.is_message:  # a REPLY and a CANCEL needn't say
            line = part.first("RECURRENCE-ID") or part.first("DTSTAMP")
        if line is None:
            raise MomentError("there is no DTSTART")
        start, rules = self._moment(line), tuple(each.value.strip() for each in part.all("RRULE"))
        zone = line.params.get("TZID", "").strip()
        if self.own and rules and isinstance(start, datetime) and start.tzinfo is UTC:
            # An export that writes everything in UTC, and means its series in its own zone.
            start = start.astimezone(self.own)
        recurrence = part.first("RECURRENCE-ID")
        return Event(
            uid=part.text("UID") or self._made_up(part, line),
            start=start,
            length=self._length(part, start),
            summary=part.text("SUMMARY")[:MAX_TEXT_CHARS],
            text=part.text("DESCRIPTION")[:MAX_TEXT_CHARS],
            location=part.text("LOCATION")[:MAX_TEXT_CHARS],
            url=_url(part),
            status=_status(part.text("STATUS")),
            busy=part.text("TRANSP").upper() != "TRANSPARENT",
            dated=line.name == "DTSTART",
            floating=not zone and isinstance(start, datetime) and not line.value.endswith("Z"),
            sequence=_whole(part.text("SEQUENCE")),
            stamp=self._stamp(part),
            zone_as_written=zone,
            organizer=next((_party(each) for each in part.all("ORGANIZER")), None),
            attendees=tuple(_party(each) for each in part.all("ATTENDEE")),
            alarms=tuple(self._alarms(part)),
            rules=rules,
            extra=tuple(self._periods(part)),
            without=tuple(self._moments(part, "EXDATE")),
            recurrence=self._moment(recurrence) if recurrence else None,
            and_future=bool(recurrence) and _future(recurrence),
            remarks=tuple(dict.fromkeys((*self.remarks[:5], *part.broken[:3]))),
        )

    def _moment(self, line: Line, text: str | None = None) -> date | datetime:
        """Read one moment of a property, in its zone.

        Raises:
            MomentError: it is none; the property is named.
        """
        zone, value = line.params.get("TZID", ""), line.value if text is None else text
        if text is None and ":" in value:  # a zone with a colon, and no quotes around it
            zone, value = f"{zone}:{value.rpartition(':')[0]}", value.rpartition(":")[2]
        try:
            at = moment(value)
        except MomentError as error:
            problem = f"{line.name} is no date: {error}"
            raise MomentError(problem) from error
        if isinstance(at, datetime):
            if line.params.get("VALUE", "").upper() == "DATE":
                return at.date()
            if zone and line.name not in {"DTSTAMP", "LAST-MODIFIED", "CREATED"}:
                # A zone goes before a Z behind it: who names one means the local time.
                at = at.replace(tzinfo=self._zone(zone))
            elif at.tzinfo is None:
                at = at.replace(tzinfo=self.zones.user)
        return at

    def _made_up(self, part: Component, start: Line) -> str:
        """Return a UID for an event without one: the same for the same event."""
        self.remarks.append("there is no UID")
        told = f"{start.value}\n{part.text('SUMMARY')}\n{part.text('RECURRENCE-ID')}"
        return f"no-uid-{hashlib.sha256(told.encode()).hexdigest()[:24]}"

    def _moments(self, part: Component, name: str) -> Iterator[date | datetime]:
        for line in part.all(name):
            for text in line.value.split(",")[:MAX_DATES]:
                if not text.strip():
                    continue
                try:
                    yield self._moment(line, text.rpartition(":")[2])
                except MomentError as error:
                    self.remarks.append(str(error))

    def _periods(self, part: Component) -> Iterator[Period]:
        for line in part.all("RDATE"):
            for text in line.value.split(",")[:MAX_DATES]:
                if not text.strip():
                    continue
                try:
                    yield self._period(line, text)
                except MomentError as error:
                    self.remarks.append(str(error))

    def _period(self, line: Line, text: str) -> Period:
        begin, _, end = text.rpartition(":")[2].partition("/")
        start = self._moment(line, begin)
        if not end:
            return Period(start=start)
        if end.strip().upper().startswith(("P", "+P")):
            return Period(start=start, length=duration(end))
        return Period(start=start, length=_between(start, self._moment(line, end)))

    def _length(self, part: Component, start: date | datetime) -> timedelta:
        """Return how long it lasts; never negative. Days without an end are one day (3.6.1)."""
        whole = timedelta() if isinstance(start, datetime) else timedelta(days=1)
        length = whole
        end, span = part.first("DTEND"), part.first("DURATION")
        try:
            if end is not None and end.value.strip():
                length = _between(start, self._moment(end))
            elif span is not None and span.value.strip():
                length = duration(span.value)
        except MomentError as error:
            self.remarks.append(f"its end can't be read: {error}")
        if not isinstance(start, datetime):
            length = timedelta(days=length.days)
        return max(length, whole)

    def _stamp(self, part: Component) -> datetime | None:
        for name in ("DTSTAMP", "LAST-MODIFIED", "CREATED"):
            line = part.first(name)
            try:
                at = self._moment(line) if line else None
            except MomentError:
                continue  # it decides between two copies only; the event itself is whole
            if isinstance(at, datetime):
                return at.astimezone(UTC)
        return None

    def _alarms(self, part: Component) -> Iterator[Alarm]:
        for alarm in list(part.within("VALARM"))[:MAX_ALARMS]:
            line = alarm.first("TRIGGER")
            if line is None or alarm.text("ACTION").upper() == "NONE":
                continue
            try:
                yield self._alarm(alarm, line)
            except MomentError as error:
                self.remarks.append(f"an alarm is left out: {error}")

    def _alarm(self, alarm: Component, line: Line) -> Alarm:
        every = alarm.text("DURATION")
        common = Alarm(
            text=alarm.text("DESCRIPTION")[:MAX_TEXT_CHARS],
            repeats=min(_whole(alarm.text("REPEAT")), MAX_REPEATS) if every else 0,
            every=duration(every) if every else timedelta(),
        )
        is_span = line.value.strip().lstrip("+-").upper().startswith("P")
        at = None if is_span else self._moment(line)
        return Alarm(
            at=at.astimezone(UTC) if isinstance(at, datetime) else None,
            offset=duration(line.value) if is_span else timedelta(),
            from_end=line.params.get("RELATED", "").upper() == "END",
            text=common.text,
            repeats=common.repeats,
            every=common.every,
        )

    def _zone(self, name: str) -> tzinfo:
        zone = self.zones.find(name)
        if name.strip() in self.zones.unknown:
            self.remarks.append(f"nobody knows the zone {name.strip()!r}: read as the user's")
        return zone


def _between(start: date | datetime, end: date | datetime) -> timedelta:
    """Return the time from start to end, in the start's kind."""
    if isinstance(start, datetime):
        if not isinstance(end, datetime):
            end = datetime(end.year, end.month, end.day, tzinfo=start.tzinfo)
        return end.astimezone(UTC) - start.astimezone(UTC)
    return (end.date() if isinstance(end, datetime) else end) - start


def _future(line: Line | None) -> bool:
    return line is not None and line.params.get("RANGE", "").upper() == "THISANDFUTURE"


def _status(text: str) -> Status:
    try:
        return Status(text.lower())
    except ValueError:
        return Status.CONFIRMED


def _whole(text: str) -> int:
    return min(int(text), 2**31) if text.isascii() and text.isdigit() else 0


def _party(line: Line) -> Party:
    return Party(
        address=address(line.value),
        name=line.params.get("CN", "")[:200],
        answer=line.params.get("PARTSTAT", "").lower(),
        sent_by=address(line.params.get("SENT-BY", "")),
    )


def address(text: str) -> str:
    """Return a mail address out of a CAL-ADDRESS, in lower case."""
    bare = text.strip()
    return bare[7:].strip().lower() if bare[:7].lower() == "mailto:" else bare.lower()


def _url(part: Component) -> str:
    line = part.first("URL")
    url = line.value.strip() if line else ""
    return url if url.startswith(("https://", "http://")) else ""
