"""The agenda of a real CalDAV server: what takes up time, and what does not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from fixtures.radicale import PASSWORD, Desk
from upright.api import ConnectorNotReadyError, SecretRef
from upright.testing.context import MemoryContext
from upright_calendar.connector import CalendarConnector
from upright_calendar.settings import CalendarSettings

US = "team@example.org"
NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)


def made(desk: Desk) -> tuple[CalendarConnector, MemoryContext]:
    settings = CalendarSettings(
        url=desk.server.url, user=desk.user, password=SecretRef("s"), addresses=(US,)
    )
    context = MemoryContext(source="desk", secrets={"s": PASSWORD})
    return CalendarConnector("desk", settings), context


async def put(desk: Desk, uid: str, begin: datetime, *more: str) -> None:
    stamp = f"{begin:%Y%m%dT%H%M%SZ}"
    await desk.put(uid, f"DTSTAMP:{stamp}", f"DTSTART:{stamp}", "DURATION:PT1H", *more)


async def test_it_tells_what_takes_up_time_and_leaves_out_what_does_not(desk: Desk) -> None:
    half = timedelta(minutes=30)
    await put(desk, "in-the-way", NOON + half, "SUMMARY:Dentist")
    await put(desk, "touches", NOON + timedelta(hours=1), "SUMMARY:Later")
    await put(desk, "free", NOON, "TRANSP:TRANSPARENT")
    await put(desk, "off", NOON, "STATUS:CANCELLED")
    await put(desk, "declined", NOON, f"ATTENDEE;PARTSTAT=DECLINED:mailto:{US}")
    await put(desk, "weekly", NOON - timedelta(days=14), "RRULE:FREQ=WEEKLY", "SUMMARY:Choir")
    connector, context = made(desk)
    await connector.start(context)
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(connector.listen())
        await context.until_cursor()
        told = await connector.agenda(NOON, NOON + timedelta(hours=1))
        hearing.cancel()
    await connector.stop(5.0)
    assert [(one.title, one.since - NOON) for one in told] == [
        ("Choir", timedelta()),
        ("Dentist", half),
    ]
    assert told[1].until == NOON + 3 * half
    assert told[1].thread == "meeting:in-the-way"


async def test_before_the_first_look_nothing_is_called_free(desk: Desk) -> None:
    connector, context = made(desk)
    await connector.start(context)
    with pytest.raises(ConnectorNotReadyError, match="not read yet"):
        await connector.agenda(NOON, NOON + timedelta(hours=1))
    await connector.stop(5.0)
