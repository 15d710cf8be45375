"""Events: what a calendar says of one meeting, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from upright.kit.calendar.moments import spelled


class Status(StrEnum):
    """Whether it takes place."""

    CONFIRMED = "confirmed"
    TENTATIVE = "tentative"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Somebody invited, or who invites: address in lower case, name, and the answer given."""

    address: str
    name: str = ""
    answer: str = ""
    sent_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A reminder: ``at`` an instant, or ``before`` the start (negative) or the end.

    ``repeats`` further ones follow, ``every`` so long.
    """

    at: datetime | None = None
    offset: timedelta = timedelta()
    from_end: bool = False
    text: str = ""
    repeats: int = 0
    every: timedelta = timedelta()

    @property
    def key(self) -> str:
        """Return what tells it from the event's other alarms."""
        if self.at is not None:
            return spelled(self.at)
        return f"{'end' if self.from_end else 'start'}{self.offset.total_seconds():+.0f}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One RDATE: a start, and its own length where it has one."""

    start: date | datetime
    length: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One VEVENT: a single event, the master of a series, or the exception of one instance.

    ``start`` is aware, in the zone in which the event lives, or a plain date: then it is all-day,
    and the dates are the same in every zone. ``length`` is whole days then. ``recurrence`` names
    the instance that an exception stands for; with ``and_future`` it stands for all later ones.
    ``dated`` is false where a message about a meeting (a REPLY, a CANCEL) does not say when it is.
    """

    uid: str
    start: date | datetime
    length: timedelta
    summary: str = ""
    text: str = ""
    location: str = ""
    url: str = ""
    status: Status = Status.CONFIRMED
    busy: bool = True
    floating: bool = False
    dated: bool = True
    sequence: int = 0
    stamp: datetime | None = None
    zone_as_written: str = ""
    organizer: Party | None = None
    attendees: tuple[Party, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    rules: tuple[str, ...] = ()
    extra: tuple[Period, ...] = ()
    without: tuple[date | datetime, ...] = ()
    recurrence: date | datetime | None = None
    and_future: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def all_day(self) -> bool:
        """Tell whether it is days, not hours."""
        return not isinstance(self.start, datetime)

    @property
    def instance(self) -> str:
        """Return which instance it stands for; empty for a master and a single event."""
        return "" if self.recurrence is None else spelled(self.recurrence)

    @property
    def repeats(self) -> bool:
        """Tell whether it makes more than one instance."""
        return bool(self.rules or self.extra)

    @property
    def version(self) -> tuple[int, datetime | None]:
        """Return what tells an older copy from a newer one (RFC 5546, 2.1.5)."""
        return self.sequence, self.stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A part that can't be used: which one, and why, in a few words."""

    uid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """All that was read of some bytes, over all VCALENDAR in it."""

    events: tuple[Event, ...] = ()
    broken: tuple[Broken, ...] = ()
    method: str = ""
    name: str = ""
