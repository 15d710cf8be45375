"""When a line is due: forms, zones, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from upright_timer.schedule import parse, times, upcoming
from upright_timer.settings import Misfire, TimerLine, TimerSettings

NEW_YORK: Final = ZoneInfo("America/New_York")
LORD_HOWE: Final = ZoneInfo("Australia/Lord_Howe")
ANCHOR: Final = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


def local(when: str, zone: ZoneInfo, day: str, *, days: int = 1) -> list[str]:
    """Return when a line is due on a day, in local time with its offset."""
    begin = datetime.fromisoformat(day).replace(tzinfo=zone)
    end = begin + timedelta(days=days)
    found: list[str] = []
    for due in times(parse(when, zone), begin.astimezone(UTC) - timedelta(seconds=1), begin):
        if due >= end.astimezone(UTC):
            break
        found.append(f"{due.astimezone(zone):%d %H:%M%z}")
    return found


@pytest.mark.case("KD/3490")
@pytest.mark.feature("timer.schedule")
@pytest.mark.parametrize(
    ("when", "zone", "day", "due"),
    [
        ("30 1 * * *", NEW_YORK, "2026-11-01", ["01 01:30-0400"]),  # comes twice, runs once
        ("30 2 * * *", NEW_YORK, "2026-03-08", ["08 03:00-0400"]),  # does not come, runs at its end
        ("30 2 * * *", NEW_YORK, "2026-11-01", ["01 02:30-0500"]),
        ("0 12 * * *", NEW_YORK, "2026-11-01", ["01 12:00-0500"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-04", ["04 02:30+1100"]),  # half an hour is left out
        ("45 1 * * *", LORD_HOWE, "2026-04-05", ["05 01:45+1100"]),  # half an hour comes twice
    ],
)
def test_a_fixed_hour_on_the_day_of_the_change(
    when: str, zone: ZoneInfo, day: str, due: list[str]
) -> None:
    assert local(when, zone, day) == due


@pytest.mark.case("KD/3490")
@pytest.mark.feature("timer.schedule")
@pytest.mark.parametrize(
    ("day", "zone", "quarters"),
    [
        ("2026-11-01", NEW_YORK, 100),
        ("2026-03-08", NEW_YORK, 92),
        ("2026-04-05", LORD_HOWE, 98),
        ("2026-10-04", LORD_HOWE, 94),
    ],
)
def test_a_line_with_a_star_keeps_its_pace_through_the_change(
    day: str, zone: ZoneInfo, quarters: int
) -> None:
    assert len(local("*/15 * * * *", zone, day)) == quarters


def test_between_the_two_passes_of_an_hour_no_time_of_the_first_is_named_again() -> None:
    second_pass = datetime(2026, 11, 1, 6, 10, tzinfo=UTC)  # 01:10, for the second time
    due = parse("30 1 * * *", NEW_YORK).after(second_pass, ANCHOR)
    assert due == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


def test_intervals_count_elapsed_time_from_when_the_line_was_first_seen() -> None:
    every = parse("every 90 min", NEW_YORK)
    assert every.after(ANCHOR, ANCHOR) == ANCHOR + timedelta(minutes=90)
    late = ANCHOR + timedelta(hours=4)
    assert every.after(late, ANCHOR) == ANCHOR + timedelta(hours=4.5)
    assert every.after(ANCHOR + timedelta(minutes=90), ANCHOR) == ANCHOR + timedelta(hours=3)


def test_a_moment_is_due_once_in_its_zone() -> None:
    once = parse("at 2026-12-24 18:00", NEW_YORK)
    due = datetime(2026, 12, 24, 23, 0, tzinfo=UTC)
    assert once.after(ANCHOR, ANCHOR) == due
    assert once.after(due, ANCHOR) is None
    assert upcoming(once, ANCHOR, ANCHOR) == [due]
    assert parse("at 2026-12-24T18:00:00+01:00", NEW_YORK).after(ANCHOR, ANCHOR) == datetime(
        2026, 12, 24, 17, 0, tzinfo=UTC
    )


def test_a_span_is_due_once_after_the_line_was_first_seen() -> None:
    span = parse("after 20 minutes", NEW_YORK)
    assert span.after(ANCHOR, ANCHOR) == ANCHOR + timedelta(minutes=20)
    assert span.after(ANCHOR + timedelta(hours=1), ANCHOR) is None


def test_the_next_five_are_shown() -> None:
    hours = [f"{due:%H}" for due in upcoming(parse("@hourly", NEW_YORK), ANCHOR, ANCHOR)]
    assert hours == ["11", "12", "13", "14", "15"]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("", "is none of these"),
        ("sometimes", "is none of these"),
        ("61 * * * *", "is none of these"),
        ("0 0 30 2 *", "is none of these"),
        ("every 0 minutes", "between a second and ten years"),
        ("every 5 moons", "is no unit"),
        ("every 9999999 days", "between a second and ten years"),
        ("at noon", "must name a moment"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(when: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TimerLine(name="x", when=when)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"zone": "Mars/Base"}, "is no zone"),
        ({"name": " "}, "name must not be empty"),
        ({"jitter_s": -1.0}, "jitter_s"),
        ({"grace_s": 0.0}, "grace_s"),
    ],
)
def test_settings_that_cannot_work_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TimerLine(**{"name": "x", "when": "@daily", **settings})


def test_two_lines_of_one_name_are_refused() -> None:
    line = TimerLine(name="x", when="@daily", misfire=Misfire.SKIP)
    with pytest.raises(ValueError, match="two lines are called 'x'"):
        TimerSettings(lines=(line, line))
    with pytest.raises(ValueError, match="between 1 and 200"):
        TimerSettings(lines=())
