"""Recurrence: rules, exceptions, zones and bounds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from upright.kit.calendar.busy import conflicts
from upright.kit.calendar.moments import spelled
from upright.kit.calendar.occur import Occurrence, Window, occurrences, series
from upright.kit.calendar.reader import read
from upright.kit.calendar.rules import MAX_PER_RULE, RuleError, follow

LISBON: Final = ZoneInfo("Europe/Lisbon")
YEAR: Final = Window(
    since=datetime(2026, 1, 1, tzinfo=UTC), until=datetime(2027, 1, 1, tzinfo=UTC), zone=LISBON
)


def found(*events: tuple[str, ...], window: Window = YEAR) -> list[Occurrence]:
    lines = ["BEGIN:VCALENDAR"]
    for each in events:
        lines += ["BEGIN:VEVENT", "UID:a", *each, "END:VEVENT"]
    calendar = read("\n".join([*lines, "END:VCALENDAR"]).encode(), user_zone=LISBON)
    assert not calendar.broken
    ((_, copies),) = series(calendar.events).items()
    return occurrences(copies, window)


def naive(text: str) -> datetime:
    return datetime.fromisoformat(text)


def starts(*events: tuple[str, ...], window: Window = YEAR) -> list[str]:
    return [f"{each.start:%m%d %H%M}" for each in found(*events, window=window)]


@pytest.mark.case("NI/100")
def test_a_weekly_meeting_keeps_its_local_time_when_the_clocks_change() -> None:
    weekly = ("DTSTART;TZID=America/New_York:20261027T121000", "RRULE:FREQ=WEEKLY;COUNT=2")
    assert starts(weekly) == ["1027 1610", "1103 1710"]


@pytest.mark.feature("calendar.recurrence")
def test_rdate_exdate_and_count() -> None:
    master = (
        "DTSTART:20260601T090000Z",
        "RRULE:FREQ=DAILY;COUNT=4",
        "EXDATE:20260602T090000Z",
        "RDATE:20260610T120000Z,20260601T090000Z",
        "RDATE;VALUE=PERIOD:20260611T120000Z/PT2H",
    )
    assert starts(master) == ["0601 0900", "0603 0900", "0604 0900", "0610 1200", "0611 1200"]
    assert found(master)[-1].end - found(master)[-1].start == timedelta(hours=2)


@pytest.mark.parametrize("until", ["20260603", "20260603T100000", "20260603T090000Z"])
def test_until_in_each_of_its_forms_takes_in_the_last_one(until: str) -> None:
    master = ("DTSTART;TZID=Europe/Lisbon:20260601T100000", f"RRULE:FREQ=DAILY;UNTIL={until}")
    assert starts(master) == ["0601 0900", "0602 0900", "0603 0900"]


def test_an_exdate_by_date_or_by_another_zone_takes_an_instance_out() -> None:
    master = (
        "DTSTART;TZID=Europe/Lisbon:20260601T100000",
        "RRULE:FREQ=DAILY;COUNT=3",
        "EXDATE;VALUE=DATE:20260601",
        "EXDATE;TZID=Asia/Tokyo:20260602T180000",
    )
    assert starts(master) == ["0603 0900"]


@pytest.mark.feature("calendar.recurrence")
def test_an_exception_moves_one_instance_also_out_of_and_into_the_window() -> None:
    master = ("DTSTART:20261230T090000Z", "RRULE:FREQ=DAILY;COUNT=4")
    out = ("RECURRENCE-ID:20261231T090000Z", "DTSTART:20270301T090000Z")
    into = ("RECURRENCE-ID:20270102T090000Z", "DTSTART:20260501T090000Z")
    assert starts(master, out, into) == ["0501 0900", "1230 0900"]
    assert found(master, out, into)[0].key == "20270102T090000Z"


def test_a_cancelled_instance_is_told_as_such_and_only_once() -> None:
    master = ("DTSTART:20260601T090000Z", "RRULE:FREQ=DAILY;COUNT=2")
    off = ("RECURRENCE-ID:20260602T090000Z", "DTSTART:20260602T090000Z", "STATUS:CANCELLED")
    assert [(each.key, each.cancelled) for each in found(master, off)] == [
        ("20260601T090000Z", False),
        ("20260602T090000Z", True),
    ]


@pytest.mark.feature("calendar.recurrence")
def test_this_and_future_moves_all_later_ones_but_those_that_stand_alone() -> None:
    master = ("DTSTART;TZID=Europe/Lisbon:20261023T100000", "RRULE:FREQ=DAILY;COUNT=5")
    later = (
        "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Lisbon:20261024T100000",
        "DTSTART;TZID=Europe/Lisbon:20261024T113000",
        "DURATION:PT20M",
    )
    alone = ("RECURRENCE-ID;TZID=Europe/Lisbon:20261026T100000", "DTSTART:20261026T200000Z")
    assert starts(master, later, alone) == [
        *("1023 0900", "1024 1030", "1025 1130", "1026 2000", "1027 1130")
    ]
    assert found(master, later)[2].end - found(master, later)[2].start == timedelta(minutes=20)


def test_the_newest_copy_counts_by_sequence_then_by_stamp() -> None:
    old = ("DTSTART:20260601T090000Z", "SEQUENCE:1", "DTSTAMP:20260101T000000Z")
    new = ("DTSTART:20260602T090000Z", "SEQUENCE:1", "DTSTAMP:20260102T000000Z")
    newest = ("DTSTART:20260603T090000Z", "SEQUENCE:2", "DTSTAMP:20250101T000000Z")
    assert starts(newest, new, old) == ["0603 0900"]
    assert starts(new, old) == ["0602 0900"]


def test_an_all_day_series_is_named_by_dates_or_by_midnights() -> None:
    master = (
        "DTSTART;VALUE=DATE:20260601",
        "RRULE:FREQ=DAILY;COUNT=3",
        "EXDATE;TZID=Asia/Hong_Kong:20260602T000000",
    )
    assert [each.first for each in found(master)] == [date(2026, 6, 1), date(2026, 6, 3)]


def test_a_day_begins_and_ends_with_the_users_midnight() -> None:
    spring = found(("DTSTART;VALUE=DATE:20260329",))[0]
    assert spring.end - spring.start == timedelta(hours=23)


def test_an_old_rule_is_followed_from_near_the_window() -> None:
    since, until = naive("2026-05-31T00:00"), naive("2026-06-02T00:00")
    old = naive("1901-01-01T00:05")
    rule = "FREQ=HOURLY;INTERVAL=36"
    near = follow(rule, old, since, until)
    hours = [(at - old) / timedelta(hours=1) for at in near if isinstance(at, datetime)]
    assert hours
    assert all(hour % 36 == 0 for hour in hours)


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=5",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=WEEKLY;UNTIL=19990101",
    ],
)
def test_a_rule_that_never_matches_comes_to_an_end(rule: str) -> None:
    assert not follow(
        rule, naive("2020-01-01T00:00"), naive("2026-01-01T00:00"), naive("2026-02-01T00:00")
    )


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY;COUNT=100000000", "FREQ=NEVER", "", "COUNT=3", "FREQ=DAILY;COUNT=x"]
)
def test_a_rule_that_cannot_be_followed_is_refused(rule: str) -> None:
    with pytest.raises(RuleError):
        follow(
            rule, naive("2020-01-01T00:00"), naive("2026-01-01T00:00"), naive("2026-02-01T00:00")
        )


@pytest.mark.feature("calendar.recurrence")
def test_a_dense_rule_is_bounded() -> None:
    dense = follow(
        "FREQ=SECONDLY",
        naive("2020-01-01T00:00"),
        naive("2026-01-01T00:00"),
        naive("2027-01-01T00:00"),
    )
    assert len(dense) == MAX_PER_RULE


def busy(*lines: str) -> list[str]:
    text = "\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR"]).encode()
    events = read(text, user_zone=LISBON).events
    since = datetime(2026, 6, 10, 14, 0, tzinfo=UTC)
    overlapping = conflicts(
        series(events),
        since,
        since + timedelta(hours=1),
        zone=LISBON,
        besides="self",
        mine=("me@example.org",),
    )
    return [each.event.uid for each in overlapping]


def meeting(uid: str, start: str, *more: str) -> tuple[str, ...]:
    head = ("BEGIN:VEVENT", f"UID:{uid}", f"DTSTART:{start}", "DURATION:PT1H")
    return (*head, *more, "END:VEVENT")


def test_what_overlaps_is_in_the_way_and_what_is_free_or_off_is_not() -> None:
    assert busy(
        *meeting("overlaps", "20260610T133000Z"),
        *meeting("touches", "20260610T130000Z"),
        *meeting("follows", "20260610T150000Z"),
        *meeting("self", "20260610T140000Z"),
        *meeting("free", "20260610T140000Z", "TRANSP:TRANSPARENT"),
        *meeting("off", "20260610T140000Z", "STATUS:CANCELLED"),
        *meeting("no", "20260610T140000Z", "ATTENDEE;PARTSTAT=DECLINED:mailto:me@example.org"),
        *meeting("weekly", "20260603T143000Z", "RRULE:FREQ=WEEKLY"),
        *meeting("broken", "20260610T140000Z", "RRULE:FREQ=NEVER"),
    ) == ["overlaps", "weekly"]


def test_keys_are_the_same_in_every_zone() -> None:
    at = datetime(2026, 6, 1, 18, 0, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert spelled(at) == spelled(at.astimezone(LISBON)) == "20260601T090000Z"
