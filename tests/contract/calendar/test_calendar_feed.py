"""Feeds: asked by condition; what is torn or broken deletes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.calendars import at, context, listening, said, settings
from fixtures.feed import FeedServer
from upright.api import ConnectorNotReadyError, Destination, Effect, PermanentSendError
from upright_calendar.connector import CalendarConnector
from upright_calendar.settings import CalendarSettings, Protocol


def chosen(feed: FeedServer, **more: object) -> CalendarSettings:
    return settings(feed.url, "", protocol=Protocol.ICS, **more)


def fill(feed: FeedServer, *uids: str) -> None:
    for number, uid in enumerate(uids):
        feed.put(uid, at(f"1{number} 1500"), "DURATION:PT30M", f"SUMMARY:{uid}")


@pytest.mark.feature("calendar.ics")
async def test_an_unchanged_feed_is_not_sent_again(feed: FeedServer) -> None:
    fill(feed, "a", "b")
    async with listening(chosen(feed), context()) as watch:
        assert await watch.look() == []
        assert await watch.look() == []
        assert feed.asked - feed.unchanged == 1
        assert feed.unchanged >= 2


@pytest.mark.feature("calendar.ics")
async def test_events_are_told_apart_by_what_they_say_not_by_their_stamps(
    feed: FeedServer,
) -> None:
    fill(feed, "a", "b")
    async with listening(chosen(feed), context()) as watch:
        feed.put("a", at("10 1500"), "DURATION:PT30M", "SUMMARY:a", "DTSTAMP:20260601T100000Z")
        assert await watch.look() == []
        feed.put("a", at("10 1530"), "DURATION:PT30M", "SUMMARY:a")
        del feed.events["b"]
        fill(feed, *feed.events, "c")
        feed.put("a", at("10 1530"), "DURATION:PT30M", "SUMMARY:a")
        assert sorted(said(await watch.look())) == [
            "created New: c",
            "deleted Gone: b",
            "updated Changed: a",
        ]


@pytest.mark.feature("calendar.ics")
async def test_one_instance_is_moved_and_one_is_cancelled(feed: FeedServer) -> None:
    weekly = (at("03 1500"), "DURATION:PT30M", "SUMMARY:Weekly", "RRULE:FREQ=WEEKLY")
    feed.put("w", *weekly)
    async with listening(chosen(feed), context()) as watch:
        moved = ("RECURRENCE-ID:20260610T150000Z", at("11 1500"), "SUMMARY:Weekly")
        off = (
            "RECURRENCE-ID:20260617T150000Z",
            at("17 1500"),
            "SUMMARY:Weekly",
            "STATUS:CANCELLED",
        )
        feed.put("w", *weekly, "AND", *moved, "AND", *off)
        updated, cancelled = await watch.look()
        assert said([updated, cancelled]) == [
            "updated Changed: Weekly",
            "cancelled Cancelled: Weekly",
        ]
        assert dict(updated.context.facts)["instance"] == "20260610T150000Z"
        assert dict(updated.context.facts)["starts"] == "2026-06-11T15:00:00Z"
        assert updated.context.thread == cancelled.context.thread == "meeting:w"
        many = [
            part
            for n in range(1, 9)
            for part in (
                "AND",
                f"RECURRENCE-ID:202607{n:02d}T150000Z",
                f"DTSTART:202607{n:02d}T160000Z",
            )
        ]
        feed.put("w", *weekly, *many)
        (one,) = await watch.look()
        assert dict(one.context.facts)["changed_instances"] == "10"


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a"),
        (200, b"<html>Sign in</html>"),
        (200, b""),
        (404, b""),
        (500, b"oops"),
        (429, b""),
        (200, b"x" * 4_000),
    ],
)
@pytest.mark.feature("calendar.ics")
async def test_what_is_no_whole_calendar_deletes_nothing(
    feed: FeedServer, answer: tuple[int, bytes]
) -> None:
    fill(feed, "a", "b")
    async with listening(chosen(feed, max_body_bytes=2_000), context()) as watch:
        feed.answer = answer
        assert await watch.sleep(150) == []
        feed.answer = None
        del feed.events["b"]
        assert said(await watch.look()) == ["deleted Gone: b"]


async def test_an_unreadable_event_keeps_its_good_copy_and_costs_no_other(
    feed: FeedServer,
) -> None:
    fill(feed, "a", "b")
    async with listening(chosen(feed), context()) as watch:
        feed.put("a", "DTSTART:20261345T990000Z")
        feed.put("c", at("12 1500"))
        assert said(await watch.look()) == ["created New: (no title)"]
        assert "a: DTSTART is no date" in watch.connector.health().gap
        fill(feed, "a")
        assert await watch.look() == []


@pytest.mark.parametrize("status", [404, 401])
async def test_a_feed_that_is_not_there_is_said(feed: FeedServer, status: int) -> None:
    feed.answer = status, b""
    connector = CalendarConnector("cal", chosen(feed))
    await connector.start(context())
    try:
        with pytest.raises(Exception, match=r"not there|refuses"):
            await connector.validate()
    finally:
        await connector.stop(timeout_s=1)


async def test_a_feed_is_looked_at_and_not_written_to(feed: FeedServer) -> None:
    fill(feed, "a", "b")
    connector = CalendarConnector("cal", chosen(feed))
    with pytest.raises(ConnectorNotReadyError):
        await connector.validate()
    await connector.start(context())
    try:
        assert (await connector.validate()).summary == "a feed of 2 events and series"
        where = Destination(source="cal", kind="event", address=())
        with pytest.raises(PermanentSendError, match="feed"):
            await connector.send(Effect(id="e", destination=where, text="x", idempotency_key="k"))
        assert connector.capabilities().destinations == ()
    finally:
        await connector.stop(timeout_s=1)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"url": "dav.example.org"}, "url must be an address"),
        ({"url": "http://dav.example.org", "user": "u"}, "https"),
        ({"zone": "Mars/Base"}, "no zone"),
        ({"poll_s": 1.0}, "poll_s"),
        ({"window_days": 0}, "window_days"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"max_body_bytes": 1}, "max_body_bytes"),
    ],
)
def test_settings_that_cannot_work_are_named(more: dict[str, object], why: str) -> None:
    given: dict[str, Any] = {"url": "https://dav.example.org/", **more}
    with pytest.raises(ValueError, match=why):
        settings(**given)
