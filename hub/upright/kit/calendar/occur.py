"""Occurrences: when the events of one UID take place, within a window.

Rules are followed in local time, so that 12:10 stays 12:10 when the clocks change; exceptions,
moved and cancelled instances and "this and all future ones" are laid over them (RFC 5545, 3.8.4-5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice

from upright.kit.calendar.event import Event, Status
from upright.kit.calendar.moments import instant, spelled
from upright.kit.calendar.rules import MAX_PER_RULE, follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From ``since`` until before ``until``, both aware; ``zone`` says when all-day days begin."""

    since: datetime
    until: datetime
    zone: tzinfo

    def meets(self, start: datetime, end: datetime) -> bool:
        """Tell whether something lasts into the window; a moment counts as lasting."""
        return start < self.until and (end > self.since or start == end >= self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One instance: which (``key``: its original start), and when, both ends in UTC.

    ``first`` is the start as the event has it: local and aware, or a date.
    """

    event: Event
    key: str
    first: date | datetime
    start: datetime
    end: datetime

    @property
    def cancelled(self) -> bool:
        """Tell whether it does not take place."""
        return self.event.status is Status.CANCELLED


def series(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Group events by UID; of several copies of one, the newest counts, otherwise the later one."""
    newest: dict[str, dict[str, Event]] = defaultdict(dict)
    for event in events:
        known = newest[event.uid].get(event.instance)
        if known is None or not older(event, known):
            newest[event.uid][event.instance] = event
    return {uid: list(copies.values()) for uid, copies in newest.items()}


def older(one: Event, other: Event) -> bool:
    """Tell whether a copy is older than another: SEQUENCE, then DTSTAMP (RFC 5546, 2.1.5)."""
    if one.sequence != other.sequence:
        return one.sequence < other.sequence
    return one.stamp is not None and other.stamp is not None and one.stamp < other.stamp


def occurrences(events: Sequence[Event], window: Window) -> list[Occurrence]:
    """Return all instances of one UID that meet a window, by their start.

    Cancelled ones are among them: whoever asks says what they mean.

    Raises:
        RuleError: a rule of it can't be followed.
    """
    masters = [event for event in events if event.recurrence is None]
    exceptions = [event for event in events if event.recurrence is not None]
    replaced = _Named.of(e.recurrence for e in exceptions if e.recurrence is not None)
    found = [_single(event, window) for event in exceptions]
    later = sorted((e for e in exceptions if e.and_future), key=lambda e: _at(e.recurrence, window))
    for master in masters[:1]:
        found += _regular(master, later, replaced, window)
    within = [each for each in found if window.meets(each.start, each.end)]
    return sorted(within, key=lambda each: (each.start, each.key))


@dataclass(frozen=True, slots=True)
class _Named:
    """Which instances are named, by EXDATE or by exceptions.

    By the instant; where one side is a date only, by the date on which the other one begins.
    """

    keys: frozenset[str]
    dates: frozenset[str]
    days: frozenset[str]

    @classmethod
    def of(cls, moments: Iterable[date | datetime]) -> _Named:
        everything = list(moments)
        timed = [at for at in everything if isinstance(at, datetime)]
        return cls(
            keys=frozenset(spelled(at) for at in everything),
            dates=frozenset(spelled(at) for at in everything if not isinstance(at, datetime)),
            days=frozenset(spelled(at.date()) for at in timed),
        )

    def has(self, first: date | datetime) -> bool:
        """Tell whether an instance is one of them."""
        if isinstance(first, datetime):
            return spelled(first) in self.keys or spelled(first.date()) in self.dates
        return spelled(first) in self.keys or spelled(first) in self.days


def _single(event: Event, window: Window) -> Occurrence:
    key = spelled(event.start if event.recurrence is None else event.recurrence)
    return _made(event, key, first=event.start, length=event.length, zone=window.zone)


def _made(
    event: Event, key: str, *, first: date | datetime, length: timedelta, zone: tzinfo
) -> Occurrence:
    start = instant(first, zone)
    timed = isinstance(first, datetime)
    end = start + length if timed else instant(first + length, zone)  # a day may have 23 hours
    return Occurrence(event=event, key=key, first=first, start=start, end=end)


def _regular(
    master: Event, later: Sequence[Event], replaced: _Named, window: Window
) -> Iterator[Occurrence]:
    """Yield the instances that no exception stands for; from a "this and future" on, as it says."""
    without = _Named.of(master.without)
    lengths = {spelled(each.start): each.length for each in master.extra if each.length is not None}
    moved = max((abs(_shift(each)) for each in later), default=timedelta())
    reach = max([master.length, *lengths.values(), *(each.length for each in later)]) + moved
    starts = _starts(master, window, reach)
    for first in islice(starts, MAX_PER_RULE):
        key = spelled(first)
        if without.has(first) or replaced.has(first):
            continue
        rule = None
        for each in later:
            if _at(each.recurrence, window) <= instant(first, window.zone):
                rule = each
        if rule is None:
            length = lengths.get(key, master.length)
            yield _made(master, key, first=first, length=length, zone=window.zone)
        else:
            own = _local(first, rule)
            yield _made(rule, key, first=own, length=rule.length, zone=window.zone)


def _shift(exception: Event) -> timedelta:
    """Return how far "this and future" moves all of them, in local time."""
    was, now = exception.recurrence, exception.start
    if isinstance(was, datetime) and isinstance(now, datetime):
        return now.replace(tzinfo=None) - was.astimezone(now.tzinfo).replace(tzinfo=None)
    if was is None or isinstance(was, datetime) or isinstance(now, datetime):
        return timedelta()  # days became hours, or the other way: where it stood, it stays
    return now - was


def _local(first: date | datetime, rule: Event) -> date | datetime:
    if isinstance(first, datetime) and isinstance(rule.start, datetime):
        zone = rule.start.tzinfo
        moved = first.astimezone(zone).replace(tzinfo=None) + _shift(rule)
        return moved.replace(tzinfo=zone)
    if isinstance(first, datetime) is isinstance(rule.start, datetime):
        return first + _shift(rule)
    return first


def _at(at: date | datetime | None, window: Window) -> datetime:
    return instant(at, window.zone) if at is not None else datetime.min.replace(tzinfo=UTC)


def _starts(master: Event, window: Window, reach: timedelta) -> Iterator[date | datetime]:
    """Yield the original starts that may meet the window, each once, in no order.

    Raises:
        RuleError: a rule can't be followed.
    """
    zone = master.start.tzinfo if isinstance(master.start, datetime) else window.zone
    slack = timedelta(hours=3)  # no clock is ever put further in one go
    since = (window.since - reach - slack).astimezone(zone).replace(tzinfo=None)
    until = (window.until + slack).astimezone(zone).replace(tzinfo=None)
    seen: set[str] = set()
    candidates = [master.start, *(each.start for each in master.extra)]
    for rule in master.rules:
        candidates += follow(rule, master.start, since, until)
    for first in candidates:
        if (key := spelled(first)) not in seen:
            seen.add(key)
            yield first
