"""Words: a meeting as people, rules and the model read it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from upright.kit.calendar.event import Event, Party
from upright.kit.calendar.moments import instant
from upright.kit.calendar.occur import Occurrence

MAX_NAMED: Final = 12
MAX_CONFLICTS: Final = 5


def text(event: Event, *, zone: tzinfo, start: datetime | None = None) -> str:
    """Return what an event is, in lines; *start* is the instance's where it is one of a series."""
    lines = [f"When: {when(event, zone=zone, start=start)}"] if event.dated else []
    if event.rules:
        lines.append(f"Repeats: {'; '.join(event.rules)}")
    if event.location:
        lines.append(f"Where: {event.location}")
    if event.organizer:
        lines.append(f"Organizer: {party(event.organizer)}")
    if event.attendees:
        named = ", ".join(_answered(who) for who in event.attendees[:MAX_NAMED])
        more = len(event.attendees) - MAX_NAMED
        lines.append(f"Invited: {named}{f' and {more} more' if more > 0 else ''}")
    if event.text:
        lines += ["", event.text]
    return "\n".join(lines)


def when(event: Event, *, zone: tzinfo, start: datetime | None = None) -> str:
    """Say when it is: the user's zone for hours, plain dates for days."""
    first = start or event.start
    if event.all_day:
        day = first.astimezone(zone).date() if isinstance(first, datetime) else first
        last = day + event.length - timedelta(days=1)
        return f"{day}" if last <= day else f"{day} to {last}"
    return span(instant(first, zone), instant(first, zone) + event.length, zone=zone)


def span(since: datetime, until: datetime, *, zone: tzinfo) -> str:
    """Say from when until when, in a zone: ``2026-06-10 15:00-16:00 (Europe/Lisbon)``."""
    begin, end = since.astimezone(zone), until.astimezone(zone)
    last = f"{end:%H:%M}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{begin:%Y-%m-%d %H:%M}-{last} ({zone})"


def facts(event: Event, *, zone: tzinfo, start: datetime | None = None) -> dict[str, str]:
    """Return what rules may match of an event; empty ones are left out."""
    begin: date | datetime = start or event.start
    at = instant(begin, zone)
    told = {
        "uid": event.uid,
        "instance": event.instance,
        "sequence": str(event.sequence),
        "organizer": event.organizer.address if event.organizer else "",
        "location": event.location[:200],
        "repeats": "yes" if event.repeats else "",
        "all_day": "yes" if event.all_day else "",
        "meeting_status": event.status.value,
    }
    if event.dated:
        told["starts"] = iso(at)
        told["ends"] = iso(at + event.length)
        told["when"] = when(event, zone=zone, start=start)
    return {name: value for name, value in told.items() if value}


def conflict_facts(found: Iterable[Occurrence], *, zone: tzinfo) -> tuple[tuple[str, str], ...]:
    """Return one fact a meeting that stands in the way, and how many there are."""
    everything = list(found)
    if not everything:
        return ()
    named = [
        ("conflict", f"{each.event.summary or each.event.uid}, {_of(each, zone)}")
        for each in everything[:MAX_CONFLICTS]
    ]
    return (("conflicts", str(len(everything))), *named)


def party(who: Party) -> str:
    """Name somebody."""
    return f"{who.name} <{who.address}>" if who.name and who.address else who.name or who.address


def iso(at: datetime) -> str:
    """Spell an instant in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _of(each: Occurrence, zone: tzinfo) -> str:
    return when(each.event, zone=zone, start=each.start)


def _answered(who: Party) -> str:
    return f"{party(who)} ({who.answer})" if who.answer else party(who)
