"""Reading iCalendar: what is odd costs little, what is broken costs itself."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from upright.kit.calendar.event import Calendar, Event, Status
from upright.kit.calendar.lines import escape, tree, unescape
from upright.kit.calendar.moments import MomentError, duration, instant, moment
from upright.kit.calendar.reader import read

LISBON: Final = ZoneInfo("Europe/Lisbon")


def calendar(*lines: str, head: tuple[str, ...] = (), method: str = "") -> Calendar:
    body = ["BEGIN:VCALENDAR", "VERSION:2.0", *head, *([f"METHOD:{method}"] if method else [])]
    event = ["BEGIN:VEVENT", "UID:a@example.org", *lines, "END:VEVENT", "END:VCALENDAR"]
    return read("\r\n".join([*body, *event]).encode(), user_zone=LISBON)


def event(*lines: str, head: tuple[str, ...] = ()) -> Event:
    (only,) = calendar(*lines, head=head).events
    return only


def test_a_fold_within_a_character_is_undone_before_decoding() -> None:
    whole = "SUMMARY:Grüße".encode()
    cut = whole.index(b"\xc3") + 1
    root = tree(b"BEGIN:VEVENT\r\n" + whole[:cut] + b"\r\n " + whole[cut:] + b"\r\nEND:VEVENT\r\n")
    assert root.parts[0].text("SUMMARY") == "Grüße"


def test_a_component_that_is_not_closed_ends_with_its_parent() -> None:
    text = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nEND:VCALENDAR\nBEGIN:VCALENDAR\nEND:VCALENDAR"
    root = tree(text)
    assert [part.name for part in root.parts] == ["VCALENDAR", "VCALENDAR"]
    assert root.parts[0].parts[0].broken == ["no END:VEVENT"]


def test_a_text_that_ends_too_soon_says_so() -> None:
    torn = read(b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nDTSTART:20260101T090000Z", user_zone=LISBON)
    assert "no END:VCALENDAR" in [each.why for each in torn.broken]


def test_what_is_nested_without_end_is_cut_off() -> None:
    root = tree(b"BEGIN:X\n" * 5_000)
    depth, part = 0, root
    while part.parts:
        depth, part = depth + 1, part.parts[0]
    assert depth == 8
    assert part.broken


def test_text_survives_escaping() -> None:
    text = "one; two, three\\four\nfive"
    assert unescape(escape(text)) == text
    assert "\n" not in escape("a\r\nATTENDEE:mailto:b@example.org")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("PT15M", timedelta(minutes=15)),
        ("-P1W", timedelta(weeks=-1)),
        ("P1DT2H", timedelta(days=1, hours=2)),
        ("P15M", timedelta(minutes=15)),
        ("PT1W", timedelta(weeks=1)),
    ],
)
def test_durations(text: str, span: timedelta) -> None:
    assert duration(text) == span


@pytest.mark.parametrize("text", ["", "P", "PT", "15M", "P99999999999W"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(MomentError):
        duration(text)


@pytest.mark.parametrize("text", ["", "20260230", "20260101T250000", "2026-01-01", "20260101T"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(MomentError):
        moment(text)


def test_a_leap_second_is_the_last_of_its_minute() -> None:
    assert moment("20161231T235960Z") == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.feature("calendar.zones")
def test_in_a_gap_the_offset_before_counts_and_in_a_fold_the_first_time() -> None:
    gap, fold = (datetime.fromisoformat(at) for at in ("2026-03-29T01:30", "2026-10-25T01:30"))
    assert instant(gap, LISBON) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert instant(fold, LISBON) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "utc_hour"),
    [
        ("Europe/Berlin", 7),
        ("W. Europe Standard Time", 7),
        ("/mozilla.org/20050126_1/Europe/Berlin", 7),
        ("(GMT +02:00)", 7),
        ("UTC", 9),
        ("Nowhere/At all", 8),  # the user's, with a remark
    ],
)
@pytest.mark.feature("calendar.zones")
def test_a_zone_is_found_however_it_is_written(zone: str, utc_hour: int) -> None:
    one = event(f"DTSTART;TZID={zone}:20260701T090000")
    assert instant(one.start, LISBON).hour == utc_hour
    assert bool(one.remarks) is (zone == "Nowhere/At all")


def test_a_zone_with_a_colon_and_no_quotes_is_read() -> None:
    one = event("DTSTART;TZID=(UTC-05:00) Eastern Time:20260701T090000")
    assert one.start == datetime(2026, 7, 1, 9, 0, tzinfo=LISBON)
    assert one.remarks == ("nobody knows the zone '(UTC-05:00) Eastern Time': read as the user's",)


@pytest.mark.feature("calendar.zones")
def test_a_zone_of_the_files_own_is_followed() -> None:
    own = (
        *("BEGIN:VTIMEZONE", "TZID:Customized Time Zone", "X-ODD:1", "BEGIN:STANDARD"),
        *("DTSTART:16010101T030000", "TZOFFSETFROM:+0300", "TZOFFSETTO:+0200"),
        *("RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10", "END:STANDARD", "BEGIN:DAYLIGHT"),
        *("DTSTART:16010101T020000", "TZOFFSETFROM:+0200", "TZOFFSETTO:+0300"),
        *("RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3", "END:DAYLIGHT", "END:VTIMEZONE"),
    )
    summer = event("DTSTART;TZID=Customized Time Zone:20260701T090000", head=own)
    winter = event("DTSTART;TZID=Customized Time Zone:20261201T090000", head=own)
    assert [instant(each.start, LISBON).hour for each in (summer, winter)] == [6, 7]


def test_two_files_may_call_different_zones_by_one_name() -> None:
    def own(offset: str) -> tuple[str, ...]:
        rule = ("DTSTART:19700101T000000", f"TZOFFSETFROM:{offset}", f"TZOFFSETTO:{offset}")
        return (
            "BEGIN:VTIMEZONE",
            "TZID:Own",
            "BEGIN:STANDARD",
            *rule,
            "END:STANDARD",
            "END:VTIMEZONE",
        )

    hours = [
        instant(event("DTSTART;TZID=Own:20260701T090000", head=own(o)).start, LISBON).hour
        for o in ("+0200", "+0500")
    ]
    assert hours == [7, 4]


@pytest.mark.feature("calendar.zones")
def test_a_floating_time_is_the_users_and_the_calendars_own_zone_goes_before() -> None:
    floating = event("DTSTART:20260701T090000")
    assert (floating.floating, instant(floating.start, UTC).hour) == (True, 8)
    tokyo = event("DTSTART:20260701T090000", head=("X-WR-TIMEZONE:Asia/Tokyo",))
    assert instant(tokyo.start, LISBON).hour == 0


@pytest.mark.feature("calendar.zones")
def test_days_are_dates_and_last_at_least_one() -> None:
    assert event("DTSTART;VALUE=DATE:20260701").length == timedelta(days=1)
    assert event("DTSTART:20260701", "DTEND:20260704").length == timedelta(days=3)
    assert event("DTSTART:20260701", "DTEND:20260701").length == timedelta(days=1)
    assert event("DTSTART:20260701").start == date(2026, 7, 1)


def test_an_end_before_the_start_is_no_length() -> None:
    one = event("DTSTART:20260701T090000Z", "DTEND:20260701T080000Z")
    assert one.length == timedelta()


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("DTEND:soon", "its end can't be read"),
        ("EXDATE:never", "EXDATE is no date"),
        ("RDATE:083000", "RDATE is no date"),
        ("NONSENSE", "no property"),
    ],
)
def test_a_bad_line_costs_itself_and_is_remarked(line: str, remark: str) -> None:
    one = event("DTSTART:20260701T090000Z", line, "SUMMARY:Kept")
    assert one.summary == "Kept"
    assert remark in one.remarks[0]


def test_a_bad_alarm_costs_itself() -> None:
    alarms = (
        "BEGIN:VALARM",
        "TRIGGER:-PT5M",
        "END:VALARM",
        "BEGIN:VALARM",
        "TRIGGER:x",
        "END:VALARM",
    )
    one = event("DTSTART:20260701T090000Z", *alarms)
    assert [alarm.offset for alarm in one.alarms] == [timedelta(minutes=-5)]
    assert one.remarks


def test_a_year_at_the_end_of_time_breaks_nothing() -> None:
    found = calendar("DTSTART;TZID=America/New_York:99991231T235959", "DTEND:99991231T235959Z")
    assert [*found.events, *found.broken]


def test_an_answer_need_not_say_when_the_meeting_is() -> None:
    (reply,) = calendar("DTSTAMP:20260601T080000Z", method="REPLY").events
    assert not reply.dated
    assert not calendar("DTSTAMP:20260601T080000Z").events


def test_people_and_state_are_read() -> None:
    one = event(
        "DTSTART:20260701T090000Z",
        'ORGANIZER;CN="Quill, N";SENT-BY="mailto:Desk@example.org":mailto:Nadia@Example.org',
        "ATTENDEE;PARTSTAT=ACCEPTED;CN=Hub:MAILTO:hub@example.org",
        "STATUS:CANCELLED",
        "TRANSP:TRANSPARENT",
        "SUMMARY:one\\, two\\nthree",
    )
    assert one.organizer is not None
    assert (one.organizer.address, one.organizer.name) == ("nadia@example.org", "Quill, N")
    assert one.organizer.sent_by == "desk@example.org"
    assert one.attendees[0].answer == "accepted"
    assert (one.status, one.busy, one.summary) == (Status.CANCELLED, False, "one, two\nthree")


def test_an_event_without_uid_has_the_same_one_each_time() -> None:
    text = b"BEGIN:VEVENT\nDTSTART:20260701T090000Z\nSUMMARY:x\nEND:VEVENT"
    one, two = (read(text, user_zone=LISBON).events[0].uid for _ in range(2))
    assert one == two
    assert one.startswith("no-uid-")
