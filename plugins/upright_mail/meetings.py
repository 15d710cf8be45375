"""Meetings: an invitation by mail is news of a meeting, if it is newer than what is known.

What is known is kept in the source's cursor. A message that changes nothing (an older copy, or one
from somebody who may not change the meeting) stays a mail, and a fact says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from zoneinfo import ZoneInfo

from upright.api import Channel, Content, Trigger
from upright.kit.calendar import words
from upright.kit.calendar.event import Event
from upright.kit.calendar.itip import Change, Memory, take
from upright.kit.calendar.reader import read
from upright_mail.mime import Calendar

METHODS: Final = frozenset({"REQUEST", "ADD", "CANCEL", "REPLY", "COUNTER"})


class Meetings:
    """Follows the meetings of one source; ``memory`` belongs into the cursor of what was told."""

    def __init__(self, zone: str, memory: Memory) -> None:
        self._zone = ZoneInfo(zone)
        self.memory = memory

    def told(self, trigger: Trigger, calendar: Calendar | None) -> tuple[Trigger, ...]:
        """Return the triggers of a mail: of the meetings that it changes, else its own."""
        if calendar is None or calendar.method not in METHODS:
            return (trigger,)
        told = read(calendar.body, user_zone=self._zone)
        if not told.method:
            told = replace(told, method=calendar.method)
        taken = take(self.memory, told, sender=trigger.actor.id)
        self.memory = taken.memory
        if not taken.changes:
            whys = tuple(("calendar_ignored", one.why) for one in taken.ignored)
            facts = (*trigger.context.facts, *whys)
            return (replace(trigger, context=replace(trigger.context, facts=facts)),)
        return tuple(self._of(trigger, change, n) for n, change in enumerate(taken.changes))

    def _of(self, trigger: Trigger, change: Change, number: int) -> Trigger:
        event, context, before = change.event, trigger.context, change.before
        said = (words.text(event, zone=self._zone), trigger.content.text)
        facts = dict(context.facts) | words.facts(event, zone=self._zone)
        facts |= {"native_id": _native(event, words.iso(event.stamp) if event.stamp else "")}
        return replace(
            trigger,
            kind=f"meeting.{change.news.value}",
            channel=Channel.CALENDAR,
            content=Content(
                title=event.summary or trigger.content.title,
                text="\n\n".join(filter(None, said)),
                full=trigger.content.full,
                attachments=trigger.content.attachments,
                expects_reply=trigger.content.expects_reply,
            ),
            context=replace(
                context,
                thread=f"meeting:{event.uid}",
                joins=(context.thread, *context.joins),
                edit_of=_native(event, before.stamp) if before else "",
                facts=tuple(facts.items()),
            ),
            dedupe=tuple(f"{key}#{number}" if number else key for key in trigger.dedupe),
            occurred_at=event.stamp or trigger.occurred_at,
        )


def _native(event: Event, stamp: str) -> str:
    """Return the id of one word about a meeting; the next one names it as what it changes."""
    return f"{event.uid}:{event.instance}:{stamp.replace('-', '').replace(':', '')}"
