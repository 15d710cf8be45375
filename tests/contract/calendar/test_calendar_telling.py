"""What a change is told as: invitations, answers, and what stands in the way."""

from __future__ import annotations

import pytest

from fixtures.calendars import at, context, listening, said, settings
from fixtures.feed import FeedServer
from fixtures.still_hub import trigger
from upright.api import Actor, Address, Channel, Trigger
from upright.kit.calendar.itip import Memory
from upright.plugin.remarks import remarked
from upright_calendar.settings import CalendarSettings, Protocol
from upright_mail.meetings import Meetings
from upright_mail.mime import Calendar as MailPart

ME = "me@example.org"
INVITED = (
    "ORGANIZER;CN=Ann Weir:mailto:ann@example.net",
    f"ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:{ME}",
    "ATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@example.net",
)


def mine(feed: FeedServer, **more: object) -> CalendarSettings:
    given: dict[str, object] = {"addresses": (ME,), "zone": "Europe/Lisbon", **more}
    return settings(feed.url, "", protocol=Protocol.ICS, **given)


async def test_an_invitation_asks_for_an_answer_and_names_what_is_in_the_way(
    feed: FeedServer,
) -> None:
    feed.put("dentist", at("10 1430"), "DURATION:PT1H", "SUMMARY:Dentist")
    feed.put("weekly", at("03 1530"), "DURATION:PT1H", "SUMMARY:Weekly", "RRULE:FREQ=WEEKLY")
    feed.put("other", at("10 1600"), "DURATION:PT1H", "SUMMARY:Other")
    feed.put("free", at("10 1500"), "DURATION:PT1H", "SUMMARY:Free", "TRANSP:TRANSPARENT")
    async with listening(mine(feed), context()) as watch:
        feed.put("review", at("10 1500"), "DURATION:PT1H", "SUMMARY:Review", *INVITED)
        (trigger,) = await watch.look()
        assert (trigger.kind, trigger.channel) == ("meeting.requested", Channel.CALENDAR)
        assert (trigger.actor.id, trigger.context.address) == ("ann@example.net", Address.DIRECT)
        assert trigger.content.expects_reply
        assert trigger.context.thread == "meeting:review"
        in_the_way = [value for name, value in trigger.context.facts if name == "conflict"]
        assert in_the_way == [
            "Dentist, 2026-06-10 15:30-16:30 (Europe/Lisbon)",
            "Weekly, 2026-06-10 16:30-17:30 (Europe/Lisbon)",
        ]
        assert ("conflicts", "2") in trigger.context.facts
        first, when, *_ = trigger.content.text.splitlines()
        assert first == "In the way: " + "; ".join(in_the_way)
        assert when == "When: 2026-06-10 16:00-17:00 (Europe/Lisbon)"


async def test_a_meeting_without_conflicts_says_nothing_of_them(feed: FeedServer) -> None:
    feed.put("a", at("10 1400"), "DURATION:PT1H", "SUMMARY:A")
    async with listening(mine(feed), context()) as watch:
        feed.put("b", at("10 1500"), "DURATION:PT1H", "SUMMARY:B", *INVITED)
        (trigger,) = await watch.look()
        assert "conflicts" not in dict(trigger.context.facts)
        feed.put("b", at("10 1430"), "DURATION:PT1H", "SUMMARY:B", *INVITED)
        (moved,) = await watch.look()
        assert dict(moved.context.facts)["conflicts"] == "1"


async def test_answers_to_our_meeting_are_told_and_those_to_others_are_not(
    feed: FeedServer,
) -> None:
    def meeting(organizer: str, answer: str) -> tuple[str, ...]:
        who = (
            f"ORGANIZER:mailto:{organizer}",
            f"ATTENDEE;PARTSTAT={answer}:mailto:bob@example.net",
        )
        return (at("10 1500"), "DURATION:PT1H", "SUMMARY:Plan", *who)

    feed.put("ours", *meeting(ME, "NEEDS-ACTION"))
    feed.put("theirs", *meeting("ann@example.net", "NEEDS-ACTION"))
    async with listening(mine(feed), context()) as watch:
        feed.put("ours", *meeting(ME, "DECLINED"))
        feed.put("theirs", *meeting("ann@example.net", "DECLINED"))
        (trigger,) = await watch.look()
        assert said([trigger]) == ["answered Answered: Plan"]
        assert "bob@example.net (declined)" in trigger.content.text
        assert await watch.look() == []


async def test_a_change_and_a_change_back_are_both_told(feed: FeedServer) -> None:
    there, back = (at("10 1500"), "SUMMARY:x"), (at("11 1500"), "SUMMARY:x")
    feed.put("a", *there)
    async with listening(mine(feed), context()) as watch:
        for lines in (back, there, back):
            feed.put("a", *lines)
            assert said(await watch.look()) == ["updated Changed: x"]


async def test_the_past_is_no_news(feed: FeedServer) -> None:
    feed.put("a", at("20 1500"), "SUMMARY:a")
    async with listening(mine(feed), context()) as watch:
        feed.put("over", "DTSTART:20260501T100000Z", "SUMMARY:over")
        assert await watch.look() == []
        del feed.events["over"]
        assert await watch.look() == []


async def test_an_event_for_others_speaks_to_nobody_here(feed: FeedServer) -> None:
    async with listening(mine(feed), context()) as watch:
        feed.put("a", at("20 1500"), "ATTENDEE:mailto:bob@example.net")
        (trigger,) = await watch.look()
        assert trigger.context.address is Address.NONE


@pytest.mark.feature("calendar.recurrence")
async def test_a_rule_that_cannot_be_followed_takes_nothing_down(feed: FeedServer) -> None:
    feed.put("a", at("20 1500"), "SUMMARY:a")
    async with listening(mine(feed, starts=True), context()) as watch:
        feed.put("odd", at("20 1500"), "SUMMARY:odd", "RRULE:FREQ=SOMETIMES")
        feed.put("b", at("20 1500"), "SUMMARY:b")
        assert sorted(said(await watch.look())) == ["created New: b", "created New: odd"]


def invited_by_mail(starts: str, **facts: str) -> Trigger:
    told = {"uid": "review", "starts": starts, "ends": "2026-06-10T16:00:00Z", **facts}
    return trigger("meeting.requested", facts=tuple(told.items()))


async def test_what_stands_in_the_way_of_an_invitation_by_mail_is_known(feed: FeedServer) -> None:
    feed.put("dentist", at("10 1430"), "DURATION:PT1H", "SUMMARY:Dentist")
    feed.put("review", at("10 1500"), "DURATION:PT1H", "SUMMARY:Review itself")
    async with listening(mine(feed), context()) as watch:
        remarks = watch.connector.remarks
        assert remarks(invited_by_mail("2026-06-10T15:00:00Z")) == (
            ("conflicts", "1"),
            ("conflict", "Dentist, 2026-06-10 15:30-16:30 (Europe/Lisbon)"),
        )
        assert remarks(invited_by_mail("2026-06-10T15:30:00Z")) == ()
        assert remarks(invited_by_mail("soon")) == ()
        assert remarks(invited_by_mail("2026-06-10T15:00:00Z", conflicts="0")) == ()
        assert remarks(trigger("ci.failed")) == ()
        assert watch.connector.capabilities().remarks


@pytest.mark.feature("calendar.invitations")
async def test_the_mail_connectors_invitation_finds_what_is_in_the_calendar(
    feed: FeedServer,
) -> None:
    """The two plugins know nothing of each other: they share the kit, and the hub asks."""
    lines = (
        *("BEGIN:VCALENDAR", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:review", "SEQUENCE:0"),
        *("DTSTAMP:20260601T080000Z", "DTSTART:20260610T150000Z", "DTEND:20260610T160000Z"),
        *("SUMMARY:Review", *INVITED, "END:VEVENT", "END:VCALENDAR"),
    )
    mail = trigger("mail.received", by=Actor(id="ann@example.net"))
    part = MailPart(method="REQUEST", body="\n".join(lines).encode())
    (invited,) = Meetings("Europe/Lisbon", Memory()).told(mail, part)
    assert (invited.kind, invited.context.thread) == ("meeting.requested", "meeting:review")
    feed.put("dentist", at("10 1430"), "DURATION:PT1H", "SUMMARY:Dentist")
    async with listening(mine(feed), context()) as watch:
        lives = {"mailbox": watch.connector, "calendar": watch.connector}
        (stored,) = remarked(lives, "mailbox", (invited,))
        assert dict(stored.context.facts)["conflicts"] == "1"
        assert dict(stored.context.facts)["conflict"].startswith("Dentist, 2026-06-10 15:30")
