"""Alarms, starts and ends: fired once, at the right moment, and never for what has moved away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from fixtures.calendars import Watch, at, context, listening, settings
from fixtures.feed import FeedServer
from upright.api import Trigger
from upright.testing.context import MemoryContext
from upright_calendar.settings import Protocol

HALF = "DURATION:PT30M"


def alarm(trigger: str, *more: str) -> tuple[str, ...]:
    return ("BEGIN:VALARM", "ACTION:DISPLAY", f"TRIGGER{trigger}", *more, "END:VALARM")


@asynccontextmanager
async def clock(
    feed: FeedServer, made: MemoryContext | None = None, **more: object
) -> AsyncIterator[Watch]:
    given: dict[str, Any] = {"starts": True, "poll_s": 600.0, **more}
    chosen = settings(feed.url, protocol=Protocol.ICS, **given)
    async with listening(chosen, made or context()) as watch:
        yield watch


def fired(triggers: Sequence[Trigger]) -> list[str]:
    """Say what was fired, and when it was due."""
    found: list[str] = []
    for each in triggers:
        if each.kind.rpartition(".")[2] in {"alarm", "starts", "ends"}:
            late = " late" if ("late", "yes") in each.context.facts else ""
            found.append(f"{each.occurred_at:%d %H%M} {each.kind.rpartition('.')[2]}{late}")
    return found


async def hours(watch: Watch, count: float) -> list[str]:
    return fired(await watch.sleep(count * 3_600))


@pytest.mark.feature("calendar.alarms")
async def test_alarms_starts_and_ends_are_fired_at_their_time(feed: FeedServer) -> None:
    rings = alarm(":-PT15M", "REPEAT:1", "DURATION:PT5M"), alarm(";RELATED=END:PT0S")
    feed.put("a", at("01 1200"), HALF, "SUMMARY:Lunch", *rings[0], *rings[1])
    async with clock(feed, ends=True) as watch:
        assert await hours(watch, 4) == [
            *("01 1145 alarm", "01 1150 alarm", "01 1200 starts", "01 1230 alarm", "01 1230 ends")
        ]
        (first, *_) = watch.context.accepted
        assert first.content.title == "Reminder: Lunch"
        assert dict(first.context.facts)["starts"] == "2026-06-01T12:00:00Z"


@pytest.mark.case("TU/10498")
@pytest.mark.feature("calendar.alarms")
async def test_a_moved_event_is_fired_once_at_its_new_time(feed: FeedServer) -> None:
    feed.put("a", at("01 1100"), HALF, *alarm(":-PT10M"))
    async with clock(feed) as watch:
        feed.put("a", at("01 1300"), HALF, *alarm(":-PT10M"))
        assert await hours(watch, 4) == ["01 1250 alarm", "01 1300 starts"]


@pytest.mark.case("TU/10498")
@pytest.mark.feature("calendar.alarms")
async def test_one_moved_instance_takes_its_alarm_along(feed: FeedServer) -> None:
    hourly = (at("01 1100"), HALF, "RRULE:FREQ=HOURLY", *alarm(":-PT10M"))
    feed.put("d", *hourly)
    async with clock(feed, starts=False) as watch:
        moved = ("RECURRENCE-ID:20260601T120000Z", at("01 1230"), HALF, *alarm(":-PT10M"))
        off = ("RECURRENCE-ID:20260601T130000Z", at("01 1300"), HALF, "STATUS:CANCELLED")
        feed.put("d", *hourly, "AND", *moved, "AND", *off, *alarm(":-PT10M"))
        assert await hours(watch, 4) == ["01 1050 alarm", "01 1220 alarm", "01 1350 alarm"]


@pytest.mark.case("TU/10498")
@pytest.mark.feature("calendar.alarms")
async def test_a_deleted_and_a_declined_event_are_never_fired(feed: FeedServer) -> None:
    feed.put("a", at("01 1100"), HALF)
    feed.put("b", at("01 1100"), HALF, "ATTENDEE;PARTSTAT=DECLINED:mailto:me@example.org")
    feed.put("c", at("01 1130"), HALF, "STATUS:CANCELLED")
    async with clock(feed, addresses=("me@example.org",)) as watch:
        del feed.events["a"]
        assert await hours(watch, 3) == []


@pytest.mark.case("TU/10498")
@pytest.mark.feature("calendar.alarms")
async def test_an_edit_after_firing_and_a_restart_fire_nothing_again(feed: FeedServer) -> None:
    feed.put("a", at("01 1100"), "DURATION:PT3H", "SUMMARY:One", *alarm(":-PT10M"))
    made = context()
    async with clock(feed, made) as watch:
        assert await hours(watch, 1.1) == ["01 1050 alarm", "01 1100 starts"]
        feed.put(
            "a", at("01 1100"), "DURATION:PT3H", "SUMMARY:Two", "SEQUENCE:5", *alarm(":-PT10M")
        )
        assert await hours(watch, 0.2) == []
    async with clock(feed, made) as watch:
        assert await hours(watch, 1) == []
    assert [each.kind for each in made.emitted] == [
        *("meeting.alarm", "meeting.starts", "meeting.updated")
    ]


async def test_an_event_made_after_its_alarm_was_due_starts_and_does_not_ring(
    feed: FeedServer,
) -> None:
    feed.put("far", at("20 1100"), HALF)
    async with clock(feed, poll_s=60.0) as watch:
        await hours(watch, 0.5)
        feed.put("a", at("01 1040"), HALF, *alarm(":-PT30M"))
        assert await hours(watch, 1) == ["01 1040 starts"]


@pytest.mark.feature("calendar.alarms")
async def test_after_hours_of_sleep_what_is_over_is_left_out_and_the_rest_is_late(
    feed: FeedServer,
) -> None:
    feed.put("over", at("01 1100"), HALF, *alarm(":-PT10M"))
    feed.put("on", at("01 1230"), "DURATION:PT2H", *alarm(":-PT10M"))
    feed.put("next", at("01 1400"), HALF, *alarm(":-PT10M"))
    async with clock(feed) as watch:
        watch.context.jump(3 * 3_600)  # the machine slept
        assert await hours(watch, 1.5) == [
            *("01 1220 alarm late", "01 1230 starts late", "01 1350 alarm", "01 1400 starts")
        ]


@pytest.mark.feature("calendar.alarms")
async def test_after_a_restart_what_was_missed_is_fired_late_and_once(feed: FeedServer) -> None:
    feed.put("on", at("01 1100"), "DURATION:PT4H", *alarm(":-PT10M"))
    made = context()
    async with clock(feed, made) as watch:
        assert await hours(watch, 0.5) == []
    made.pass_time(2 * 3_600)
    async with clock(feed, made) as watch:
        assert fired(made.accepted) == ["01 1050 alarm late", "01 1100 starts late"]
        assert await hours(watch, 1) == []
    async with clock(feed, made) as watch:
        assert await hours(watch, 1) == []
    assert len(made.emitted) == 2


@pytest.mark.parametrize("days", [-3, -0.1])
async def test_when_the_clock_is_set_back_nothing_is_fired_twice(
    feed: FeedServer, days: float
) -> None:
    feed.put("a", at("01 1100"), HALF)
    feed.put("b", at("01 1200"), HALF)
    async with clock(feed) as watch:
        assert await hours(watch, 1.5) == ["01 1100 starts"]
        watch.context.jump(days * 86_400)
        assert await hours(watch, 0.2) == []
        watch.context.jump(-days * 86_400)
        assert await hours(watch, 0.5) == ["01 1200 starts"]


async def test_all_day_events_begin_with_the_users_day_and_floating_ones_with_the_users_hour(
    feed: FeedServer,
) -> None:
    feed.put("day", "DTSTART;VALUE=DATE:20260602", *alarm(":PT8H"))
    feed.put("float", "DTSTART:20260602T090000", HALF)
    async with clock(feed, zone="Europe/Lisbon") as watch:
        assert await hours(watch, 24) == ["01 2300 starts", "02 0700 alarm", "02 0800 starts"]


async def test_a_series_in_a_zone_keeps_its_hour_over_the_change(feed: FeedServer) -> None:
    feed.put("w", "DTSTART;TZID=Europe/Lisbon:20261023T100000", HALF, "RRULE:FREQ=DAILY")
    made = context(at=datetime.fromisoformat("2026-10-24T08:00:00+00:00"))
    async with clock(feed, made) as watch:
        assert await hours(watch, 30) == ["24 0900 starts", "25 1000 starts"]


async def test_moments_far_ahead_are_found_when_their_day_comes(feed: FeedServer) -> None:
    feed.put("a", at("02 1100"), HALF)
    async with clock(feed, window_days=1, poll_s=86_400.0) as watch:
        assert await hours(watch, 24.9) == []
        assert await hours(watch, 0.2) == ["02 1100 starts"]
