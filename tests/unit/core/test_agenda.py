"""Agenda: how what takes up time is joined and shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from upright.api import Appointment
from upright.core.agenda import MAX_TITLE_CHARS, MOST, Agenda, merged, told

NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)


def at(hour: int, title: str = "") -> Appointment:
    since = NOON + timedelta(hours=hour)
    return Appointment(since=since, until=since + timedelta(hours=1), title=title)


def test_all_sources_are_joined_by_the_time_and_the_silent_are_named() -> None:
    agenda = merged([("desk", (at(3),)), ("away", None), ("home", (at(1), at(2)))])
    assert [one.since.hour for one in agenda.appointments] == [13, 14, 15]
    assert (agenda.told_by, agenda.silent) == (("desk", "home"), ("away",))


@pytest.mark.parametrize(
    ("agenda", "free"),
    [
        (Agenda(told_by=("desk",)), True),
        (Agenda(told_by=("desk",), silent=("away",)), None),
        (Agenda(silent=("away",)), None),
        (Agenda(), None),
        (Agenda(appointments=(at(1),), told_by=("desk",), silent=("away",)), False),
    ],
    ids=["all-told", "one-silent", "none-told", "none-kept", "taken-anyway"],
)
def test_free_is_said_only_where_every_calendar_was_heard(
    agenda: Agenda, *, free: bool | None
) -> None:
    assert told(agenda, titles=False).get("free") is free


def test_titles_are_private_and_shown_when_asked_for() -> None:
    agenda = Agenda(appointments=(at(0, "Dentist"),), told_by=("desk",))
    assert told(agenda, titles=False)["taken"] == [
        {"since": "2026-06-10T12:00:00Z", "until": "2026-06-10T13:00:00Z"}
    ]
    assert told(agenda, titles=True)["taken"][0]["title"] == "Dentist"


def test_times_are_shown_in_utc() -> None:
    there = NOON.astimezone(ZoneInfo("Asia/Tokyo"))
    shown = told(Agenda(appointments=(Appointment(since=there, until=there),)), titles=False)
    assert shown["taken"][0]["since"] == "2026-06-10T12:00:00Z"


def test_what_is_shown_is_bounded_and_says_how_much_is_left_out() -> None:
    agenda = Agenda(appointments=tuple(at(n, "x" * 999) for n in range(MOST + 2)))
    shown = told(agenda, titles=True)
    assert (len(shown["taken"]), shown["more"]) == (MOST, 2)
    assert len(shown["taken"][0]["title"]) == MAX_TITLE_CHARS
