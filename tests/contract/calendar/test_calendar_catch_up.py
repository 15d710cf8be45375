"""A hub that was away catches up: each change once, in order, late; and the past is no news."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fixtures.calendars import START, context, watching
from fixtures.radicale import Desk
from fixtures.still_hub import PEOPLE, StillHub
from upright.core.gate import Rule, Rules, Verdict
from upright.store import intake
from upright.store.intake import Policy
from upright.store.tables import TRIGGER
from upright.testing.context import MemoryContext


def put(desk: Desk, number: int, *, minute: int, title: str) -> None:
    begins = START + timedelta(days=1, hours=number)
    stamp = START + timedelta(minutes=minute)
    desk.file(
        f"e{number:03d}",
        f"DTSTAMP:{stamp:%Y%m%dT%H%M%SZ}",
        f"DTSTART:{begins:%Y%m%dT%H%M%SZ}",
        "DURATION:PT30M",
        f"SUMMARY:{title}",
    )


def told(made: MemoryContext) -> list[str]:
    return [
        f"{each.kind.removeprefix('meeting.')} {each.content.title.partition(': ')[2]}"
        for each in made.emitted
    ]


@pytest.mark.feature("calendar.catch_up")
async def test_two_hundred_changes_while_away_are_each_told_once_in_order_and_late(
    desk: Desk,
) -> None:
    """Of an event that was made and changed meanwhile, what it became is told, once."""
    made = context()
    for number in range(20):
        put(desk, number, minute=0, title=f"old {number}")
    async with watching(desk, made):
        pass
    expected: list[str] = []
    for number in range(10):  # 10 edits of what was there, by 10 edits more: the last one counts
        put(desk, number, minute=number + 1, title="on the way")
        put(desk, number, minute=number + 1, title=f"edited {number}")
        expected.append(f"updated edited {number}")
    for number in range(100, 250):  # 150 new ones, 20 of them edited again, 10 deleted again
        put(desk, number, minute=number, title=f"new {number}")
    for number in range(100, 120):
        put(desk, number, minute=number, title=f"newer {number}")
    for number in range(240, 250):
        desk.unfile(f"e{number:03d}")
    expected += [f"created newer {n}" for n in range(100, 120)]
    expected += [f"created new {n}" for n in range(120, 240)]
    for number in range(10, 20):
        desk.unfile(f"e{number:03d}")
    expected += [f"deleted old {number}" for number in range(10, 20)]
    made.pass_time(6 * 3_600)
    async with watching(desk, made) as watch:
        assert told(made) == expected
        assert all(("late", "yes") in each.context.facts for each in made.emitted)
        assert await watch.look() == []
    async with watching(desk, made) as watch:
        assert await watch.look() == []
    assert len(made.emitted) == len(made.accepted) == len(expected)


@pytest.mark.feature("calendar.catch_up")
async def test_the_first_start_tells_nothing_of_fifty_events(desk: Desk) -> None:
    for number in range(50):
        put(desk, number, minute=0, title=f"old {number}")
    made = context()
    async with watching(desk, made, starts=True, ends=True) as watch:
        assert await watch.look() == []
        assert made.emitted == []
        assert len(made.cursors) == 1


async def test_a_lost_cursor_replays_nothing_and_is_said_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        put(desk, number, minute=0, title=f"old {number}")
    made = context(cursors=['{"v":7}'])
    async with watching(desk, made) as watch:
        put(desk, 7, minute=1, title="new")
        assert await watch.look()
        assert told(made) == ["created new"]
        assert "cursor was lost" in watch.connector.health().gap
    lost = [each for each in caplog.records if each.message == "calendar.cursor_lost"]
    assert len(lost) == 1


async def test_the_real_intake_takes_each_of_them_once(desk: Desk, still: StillHub) -> None:
    made = context()
    async with watching(desk, made):
        pass
    for number in range(10):
        put(desk, number, minute=number, title=f"new {number}")
    async with watching(desk, made):
        pass
    everything = Rules(version="1", rules=(Rule(name="all", verdict=Verdict.EXPLICIT),))
    policy = Policy(rules=everything, people=PEOPLE, routes=True)
    for again in (False, True):
        accepted = await still.do(lambda u: intake.accept(u, "cal", made.emitted, policy))
        assert [each.duplicate for each in accepted] == [again] * 10
    rows = await still.rows(TRIGGER)
    assert [row["kind"] for row in rows] == ["meeting.created"] * 10
