"""iTIP: what a message about a meeting changes, given what was known of it (RFC 5546, 6047).

Pure: the memory goes in and comes out. A message counts when it is newer than what is known
(SEQUENCE, then DTSTAMP) and comes from whom it must come: an invitation, a change and a
cancellation from the organizer, the same one as before; an answer from somebody invited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from upright.kit.calendar.event import Calendar, Event, Party, Status
from upright.kit.calendar.moments import spelled

MAX_KNOWN: Final = 1_000
EMPTY: Final[Mapping[str, Known]] = MappingProxyType({})


class News(StrEnum):
    """What a message says of a meeting."""

    REQUESTED = "requested"
    UPDATED = "updated"
    CANCELLED = "cancelled"
    ANSWERED = "answered"
    PROPOSED = "proposed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is remembered of one meeting, of one instance, or of one answer to it."""

    organizer: str = ""
    sequence: int = 0
    stamp: str = ""
    start: str = ""
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a message changes; ``before`` is what was known, ``who`` whose word it is."""

    news: News
    event: Event
    who: Party
    before: Known | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """One part of a message that changes nothing, and why."""

    uid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a message."""

    memory: Memory
    changes: tuple[Change, ...] = ()
    ignored: tuple[Ignored, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """What is known of meetings, the most recently heard of last; bounded, kept in a cursor."""

    known: Mapping[str, Known] = field(default_factory=lambda: EMPTY)

    def of(self, uid: str, instance: str = "", who: str = "") -> Known | None:
        """Return what is known of a meeting, an instance or an answer."""
        return self.known.get(_key(uid, instance, who))

    def with_(self, key: str, known: Known) -> Memory:
        """Return the memory with one more thing in it; the oldest one may go."""
        kept = {each: value for each, value in self.known.items() if each != key}
        kept[key] = known
        for oldest in list(kept)[: max(len(kept) - MAX_KNOWN, 0)]:
            del kept[oldest]
        return Memory(kept)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            key: [each.organizer, each.sequence, each.stamp, each.start, each.cancelled]
            for key, each in self.known.items()
        }

    @classmethod
    def read(cls, plain: object) -> Memory:
        """Read what :meth:`plain` made; what can't be read is not known."""
        if not isinstance(plain, dict):
            return cls()
        return cls({str(key): known for key, row in plain.items() if (known := _known(row))})


def take(memory: Memory, calendar: Calendar, *, sender: str) -> Taken:
    """Take a message in; *sender* is the address that is known to have sent it.

    Every event of it is judged for itself. Never raises.
    """
    taken = Taken(memory=memory)
    for event in calendar.events:
        outcome = _one(taken.memory, calendar.method, event, sender.strip().lower())
        if isinstance(outcome, str):
            ignored = Ignored(uid=event.uid, why=outcome)
            taken = replace(taken, ignored=(*taken.ignored, ignored))
        else:
            change, after = outcome
            taken = replace(taken, memory=after, changes=(*taken.changes, change))
    unread = tuple(Ignored(uid=each.uid, why=each.why) for each in calendar.broken)
    return replace(taken, ignored=(*taken.ignored, *unread))


def _one(memory: Memory, method: str, event: Event, sender: str) -> tuple[Change, Memory] | str:
    """Return what one event changes, or why it changes nothing."""
    match method:
        case "REQUEST" | "ADD":
            return _from_organizer(memory, event, sender, cancels=event.status is Status.CANCELLED)
        case "CANCEL":
            return _from_organizer(memory, event, sender, cancels=True)
        case "REPLY":
            return _from_attendee(memory, event, sender, News.ANSWERED)
        case "COUNTER":
            return _from_attendee(memory, event, sender, News.PROPOSED)
        case _:
            return f"{method or 'no method'}: that is no word about a meeting of ours"


def _from_organizer(
    memory: Memory, event: Event, sender: str, *, cancels: bool
) -> tuple[Change, Memory] | str:
    organizer = event.organizer
    if organizer is None or not organizer.address:
        return "it names no organizer"
    if sender not in {organizer.address, organizer.sent_by}:
        return f"it is from {sender}, and its organizer is {organizer.address}"
    whole, before = memory.of(event.uid), memory.of(event.uid, event.instance)
    for known in (whole, before):
        if known and known.organizer != organizer.address:
            return f"its organizer is {organizer.address}, and was {known.organizer}"
    if whole and event.instance and event.sequence < whole.sequence:
        return "it is older than what is known of the series"
    if before and (why := _not_newer(event, before, cancels=cancels)):
        return why
    news = _news(before or (whole if event.instance else None), cancels=cancels)
    after = Known(
        organizer=organizer.address,
        sequence=event.sequence,
        stamp=_stamp(event.stamp),
        start=spelled(event.start) if event.dated else (before.start if before else ""),
        cancelled=cancels,
    )
    change = Change(news=news, event=event, who=organizer, before=before)
    return change, memory.with_(_key(event.uid, event.instance), after)


def _news(known: Known | None, *, cancels: bool) -> News:
    if cancels:
        return News.CANCELLED
    return News.REQUESTED if known is None or known.cancelled else News.UPDATED


def _from_attendee(
    memory: Memory, event: Event, sender: str, news: News
) -> tuple[Change, Memory] | str:
    invited = (who for who in event.attendees if sender in {who.address, who.sent_by})
    who = next(invited, None)
    if who is None:
        return f"it is from {sender}, who is none of those invited"
    key = _key(event.uid, event.instance, who.address)
    before = memory.known.get(key)
    if before and (why := _not_newer(event, before, cancels=False)):
        return why
    organizer = event.organizer.address if event.organizer else ""
    after = Known(
        organizer=organizer,
        sequence=event.sequence,
        stamp=_stamp(event.stamp),
        start=spelled(event.start) if event.dated else "",
    )
    change = Change(news=news, event=event, who=who, before=before)
    return change, memory.with_(key, after)


def _not_newer(event: Event, known: Known, *, cancels: bool) -> str:
    """Say why a copy changes nothing; empty when it is newer (RFC 5546, 2.1.5)."""
    if event.sequence != known.sequence:
        return "it is older than what is known" if event.sequence < known.sequence else ""
    stamp = _stamp(event.stamp)
    if not stamp or not known.stamp or stamp > known.stamp:
        return ""
    if stamp < known.stamp:
        return "it is older than what is known"
    # Some say that a meeting is off in the very second in which they last changed it.
    return "" if cancels and not known.cancelled else "it says what is known already"


def _stamp(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}" if at else ""


def _key(uid: str, instance: str = "", who: str = "") -> str:
    return json.dumps([uid, instance, who], ensure_ascii=False)


def _known(row: object) -> Known | None:
    match row:
        case [str(organizer), int(sequence), str(stamp), str(start), bool(cancelled)]:
            return Known(
                organizer=organizer,
                sequence=sequence,
                stamp=stamp,
                start=start,
                cancelled=cancelled,
            )
        case _:
            return None
