"""Diff: what changed between what was told and what is there now. Pure.

What an event says is compared, not its stamps: many servers write those anew with each export.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from upright.kit.calendar.event import Event, Status
from upright.kit.calendar.moments import instant, spelled
from upright.kit.calendar.words import iso
from upright_calendar.copies import Copy, Look
from upright_calendar.state import MAX_KNOWN, MAX_TITLE_CHARS, Known, Part

KEEPS: Final = timedelta(days=1)  # how long after its end an event is still remembered
MAX_INSTANCES_TOLD: Final = 5


class What(StrEnum):
    """What happened to an event."""

    CREATED = "created"
    UPDATED = "updated"
    CANCELLED = "cancelled"
    ANSWERED = "answered"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change to tell. ``event`` and ``copy`` are None when the event is gone."""

    what: What
    known: Known
    key: str
    event: Event | None = None
    copy: Copy | None = None
    instances: int = 0  # how many instances changed, where they are told as one


def differences(
    known: Mapping[str, Known], look: Look, now: datetime, zone: tzinfo
) -> tuple[list[Change], dict[str, Known]]:
    """Return the changes, oldest first, and what is known when they are told."""
    changes, after = list[Change](), dict[str, Known]()
    for key, copy in look.copies.items():
        before = known.get(key)
        current = _known_of(copy, zone, before)
        if before is None and not _live(current, now):
            continue
        if key in look.unread and before is not None:
            after[key] = before  # a part of it can't be read: what was good stands
            continue
        found = list(_between(key, before, current, copy))
        if found:
            current = replace(current, revision=(before.revision if before else 0) + 1)
            changes += [replace(each, known=current) for each in found]
        if _live(current, now):
            after[key] = current
    for key, before in known.items():
        if key in look.copies or not _live(before, now):
            continue
        if key in look.unread:
            after[key] = before
        else:
            gone = replace(before, revision=before.revision + 1)
            changes.append(Change(what=What.DELETED, known=gone, key=key))
    kept = _bounded(after)
    # What is over the bound is not remembered; told now, it would be told again with each look.
    told = [each for each in changes if each.key in kept or each.key not in after]
    return sorted(told, key=_order), kept


def snapshot(look: Look, now: datetime, zone: tzinfo) -> dict[str, Known]:
    """Return what is known of a calendar at the very first, when nothing is told."""
    _, after = differences({}, look, now, zone)
    return after


def _between(key: str, before: Known | None, now: Known, copy: Copy) -> Iterator[Change]:
    """Yield the changes of one series: of the whole, then of single instances."""
    by_instance = {event.instance: event for event in copy.events}
    first = by_instance.get("") or copy.events[0]
    if before is None:
        what = What.CANCELLED if first.status is Status.CANCELLED else What.CREATED
        yield Change(what=what, known=now, key=key, event=first, copy=copy)
        return
    changed = [name for name, part in now.parts.items() if _differs(before.parts.get(name), part)]
    removed = [name for name in before.parts if name not in now.parts]
    if removed or len(changed) > MAX_INSTANCES_TOLD:
        yield Change(
            what=_what(before.parts.get(""), first, now.parts.get("")),
            known=now,
            key=key,
            event=first,
            copy=copy,
            instances=len(removed) + len([name for name in changed if name]),
        )
        return
    for name in changed:
        event = by_instance[name]
        what = _what(before.parts.get(name), event, now.parts[name])
        yield Change(what=what, known=now, key=key, event=event, copy=copy)


def _differs(before: Part | None, now: Part) -> bool:
    if before is None:
        return True
    return (before.said, before.answers) != (now.said, now.answers)


def _what(before: Part | None, event: Event, now: Part | None) -> What:
    if event.status is Status.CANCELLED:
        return What.CANCELLED
    if before and now and before.said == now.said and before.answers != now.answers:
        return What.ANSWERED
    return What.UPDATED


def _known_of(copy: Copy, zone: tzinfo, before: Known | None) -> Known:
    first = next((event for event in copy.events if not event.instance), copy.events[0])
    return Known(
        uid=copy.uid,
        title=first.summary[:MAX_TITLE_CHARS],
        starts=iso(instant(first.start, zone)),
        ends=_ends(copy, zone),
        revision=before.revision if before else 0,
        parts={event.instance: part_of(event) for event in copy.events},
    )


def part_of(event: Event) -> Part:
    """Return what is compared of an event."""
    told = (
        *(spelled(event.start), str(event.length), event.summary, event.text, event.location),
        *(event.status, event.url, str(event.busy), str(event.and_future), *event.rules),
        *(spelled(at) for at in event.without),
        *(spelled(each.start) for each in event.extra),
        *(alarm.key for alarm in event.alarms),
        event.organizer.address if event.organizer else "",
        *sorted(who.address for who in event.attendees),
    )
    answers = sorted(f"{who.address}={who.answer}" for who in event.attendees)
    return Part(said=_digest(told), answers=_digest(answers), sequence=event.sequence)


def _digest(told: tuple[str, ...] | list[str]) -> str:
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:12]


def _ends(copy: Copy, zone: tzinfo) -> int:
    """Return when the last instance ends; 0 where a rule says that there are more."""
    if any(event.repeats for event in copy.events):
        return 0
    return max(int((instant(e.start, zone) + e.length).timestamp()) for e in copy.events) or 1


def _live(known: Known, now: datetime) -> bool:
    return not known.ends or known.ends >= (now - KEEPS).timestamp()


def _bounded(known: dict[str, Known]) -> dict[str, Known]:
    """Keep what is soonest: the far future is told when it comes nearer, or others are over."""
    if len(known) <= MAX_KNOWN:
        return known
    newest = sorted(known.items(), key=lambda row: (row[1].starts, row[0]))
    return dict(newest[:MAX_KNOWN])


def _order(change: Change) -> tuple[float, str, str]:
    stamp = change.event.stamp if change.event else None
    at = stamp.timestamp() if stamp else float("inf")
    return at, change.key, change.event.instance if change.event else ""
