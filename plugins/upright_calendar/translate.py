"""Translate: changes and moments become triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from upright.api import Actor, ActorKind, Address, Channel, Content, Context, Destination, Trigger
from upright.kit.calendar.busy import conflicts
from upright.kit.calendar.event import Event
from upright.kit.calendar.occur import Occurrence, Window, occurrences
from upright.kit.calendar.rules import RuleError
from upright.kit.calendar.words import conflict_facts, facts, party, text, when
from upright.kit.late import late
from upright_calendar.copies import Copy
from upright_calendar.diff import Change, What
from upright_calendar.moments import Moment, Tells, is_late
from upright_calendar.settings import CalendarSettings
from upright_calendar.writer import is_ours

AHEAD: Final = timedelta(days=366)
_TITLES: Final = {
    What.CREATED: "New",
    What.UPDATED: "Changed",
    What.CANCELLED: "Cancelled",
    What.ANSWERED: "Answered",
    What.DELETED: "Gone",
    Tells.ALARM: "Reminder",
    Tells.STARTS: "Starts",
    Tells.ENDS: "Ends",
}
_ASKS: Final = frozenset({"meeting.requested", "meeting.updated", "meeting.proposed"})
ICS: Final = "text/calendar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Makes the triggers of one source; ``calendar`` is what is there now, by UID."""

    source: str
    settings: CalendarSettings
    zone: tzinfo

    def changes(
        self,
        changes: Sequence[Change],
        now: datetime,
        calendar: Mapping[str, Sequence[Event]],
    ) -> list[Trigger]:
        """Make the triggers of all that is worth telling, in order."""
        found = (self.change(each, now, calendar) for each in changes)
        return [trigger for trigger in found if trigger is not None]

    def change(
        self, change: Change, now: datetime, calendar: Mapping[str, Sequence[Event]]
    ) -> Trigger | None:
        """Make a change's trigger; None where it is nothing to tell: an answer to others."""
        event, known = change.event, change.known
        if event is None or change.copy is None:
            return self._gone(change, now)
        if change.what is What.ANSWERED and not self._is_mine(event):
            return None
        following = self._next(change.copy, event, now)
        start = following.start if following else None
        in_the_way = self._conflicts(following, calendar)
        told = {
            **facts(event, zone=self.zone, start=start),
            "native_id": f"{known.uid}:{event.instance}",
            "calendar": change.copy.place,
            "changed_instances": str(change.instances) if change.instances else "",
        }
        kind = self._kind(change.what, event)
        lines = [text(event, zone=self.zone, start=start)]
        if in_the_way:
            lines = ["In the way: " + "; ".join(value for _, value in in_the_way[1:]), *lines]
        return Trigger(
            kind=kind,
            channel=Channel.CALENDAR,
            actor=self._actor(event, kind),
            content=Content(
                title=f"{_TITLES[change.what]}: {event.summary or '(no title)'}",
                text="\n".join(lines),
                expects_reply=kind == "meeting.requested",
            ),
            context=self._context(event, told, in_the_way, edits=change.what is not What.CREATED),
            dedupe=(f"{known.uid}:{event.instance}:{known.revision}:{change.what}",),
            occurred_at=min(event.stamp, now) if event.stamp else now,
            raw=change.copy.raw or _raw(event),
            raw_type=ICS,
        )

    def moment(self, moment: Moment, now: datetime) -> Trigger:
        """Make a moment's trigger."""
        one, event = moment.occurrence, moment.occurrence.event
        told = {
            **facts(event, zone=self.zone, start=one.start),
            "native_id": moment.native,
            "calendar": moment.copy.place,
            "due": f"{moment.at:%Y-%m-%dT%H:%M:%SZ}",
        }
        said = text(event, zone=self.zone, start=one.start)
        made = Trigger(
            kind=f"meeting.{moment.tells}",
            channel=Channel.CALENDAR,
            actor=Actor(id=self.settings.speaker, name="calendar"),
            content=Content(
                title=f"{_TITLES[moment.tells]}: {event.summary or '(no title)'}",
                text=f"{moment.text}\n{said}".strip() if moment.text else said,
            ),
            context=self._context(event, told, (), edits=False),
            dedupe=(moment.native,),
            occurred_at=moment.at,
            raw=moment.copy.raw or _raw(event),
            raw_type=ICS,
        )
        return late(made) if is_late(moment, now) else made

    def remarks(
        self, trigger: Trigger, calendar: Mapping[str, Sequence[Event]]
    ) -> tuple[tuple[str, str], ...]:
        """Return what stands in the way of a meeting that another source tells of."""
        told = dict(trigger.context.facts)
        if trigger.kind not in _ASKS or "conflicts" in told:
            return ()
        try:
            since, until = (datetime.fromisoformat(told[name]) for name in ("starts", "ends"))
        except (KeyError, ValueError):
            return ()  # it does not say when it is
        found = conflicts(
            calendar,
            since,
            until,
            zone=self.zone,
            besides=told.get("uid", ""),
            mine=self.settings.own,
        )
        return conflict_facts(found, zone=self.zone)

    def _gone(self, change: Change, now: datetime) -> Trigger:
        known = change.known
        told = (
            ("uid", known.uid),
            ("native_id", f"{known.uid}:"),
            ("starts", known.starts),
        )
        return Trigger(
            kind=f"meeting.{change.what}",
            channel=Channel.CALENDAR,
            actor=Actor(id=self.settings.speaker, name="calendar"),
            content=Content(title=f"{_TITLES[change.what]}: {known.title or '(no title)'}"),
            context=Context(thread=thread(known.uid), edit_of=f"{known.uid}:", facts=told),
            dedupe=(f"{known.uid}::{known.revision}:{change.what}",),
            occurred_at=now,
            raw=known.uid.encode(),
            raw_type="text/plain",
        )

    def _context(
        self, event: Event, told: dict[str, str], more: tuple[tuple[str, str], ...], *, edits: bool
    ) -> Context:
        where = (("calendar", told.get("calendar", "")), ("uid", event.uid))
        return Context(
            thread=thread(event.uid),
            reply_to=Destination(source=self.source, kind="event", address=where),
            address=Address.DIRECT if self._concerns_us(event) else Address.NONE,
            links=(event.url,) if event.url else (),
            edit_of=told["native_id"] if edits else "",
            facts=(*((name, value) for name, value in told.items() if value), *more),
        )

    def _kind(self, what: What, event: Event) -> str:
        asks = any(
            who.address in self.settings.own and who.answer in {"", "needs-action"}
            for who in event.attendees
        )
        if what is What.CREATED and asks and not self._is_mine(event):
            return "meeting.requested"
        return f"meeting.{what}"

    def _actor(self, event: Event, kind: str) -> Actor:
        if kind == "meeting.created" and is_ours(event.uid):
            return Actor(id=self.settings.speaker, name="upright", kind=ActorKind.SELF)
        if event.organizer and event.organizer.address:
            return Actor(id=event.organizer.address, name=party(event.organizer))
        return Actor(id=self.settings.speaker, name="calendar")

    def _is_mine(self, event: Event) -> bool:
        return event.organizer is not None and event.organizer.address in self.settings.own

    def _concerns_us(self, event: Event) -> bool:
        """Tell whether an event speaks to the user: it is the user's own, or invites the user."""
        invited = any(who.address in self.settings.own for who in event.attendees)
        return invited or not event.attendees or self._is_mine(event)

    def _next(self, copy: Copy, event: Event, now: datetime) -> Occurrence | None:
        """Return the instance that a change is about: its own, or the next one of the series."""
        window = Window(since=now, until=now + AHEAD, zone=self.zone)
        try:
            found = occurrences(copy.events, window)
        except RuleError:
            return None
        if event.instance:
            found = [one for one in found if one.key == event.instance]
        return next((one for one in found if not one.cancelled), None)

    def _conflicts(
        self, one: Occurrence | None, calendar: Mapping[str, Sequence[Event]]
    ) -> tuple[tuple[str, str], ...]:
        if one is None or not one.event.busy:
            return ()
        found = conflicts(
            calendar,
            one.start,
            one.end,
            zone=self.zone,
            besides=one.event.uid,
            mine=self.settings.own,
        )
        return conflict_facts(found, zone=self.zone)


def thread(uid: str) -> str:
    """Return the key of a meeting's thread, the same for mail and calendar."""
    return f"meeting:{uid}"


def _raw(event: Event) -> bytes:
    """Say what an event of a feed was, since the whole feed is not kept with each change."""
    return f"UID:{event.uid}\nSUMMARY:{event.summary}\n{when(event, zone=_zone(event))}".encode()


def _zone(event: Event) -> tzinfo:
    return (event.start.tzinfo if isinstance(event.start, datetime) else None) or UTC
