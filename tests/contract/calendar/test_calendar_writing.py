"""An event is made once, whatever becomes of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from fixtures.calendars import context, settings, watching
from fixtures.dav_proxy import DavProxy, cut, proxied
from fixtures.radicale import Desk
from upright.api import (
    ActorKind,
    Destination,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright_calendar.connector import CalendarConnector
from upright_calendar.writer import is_ours, uid_of

LUNCH = "Lunch, with; Grüße ✅\nAt the harbour.\nBring an umbrella." + " And wait." * 20


@asynccontextmanager
async def writer(desk: Desk, url: str = "") -> AsyncIterator[CalendarConnector]:
    connector = CalendarConnector("cal", settings(url or desk.server.url, desk.user))
    await connector.start(context())
    try:
        yield connector
    finally:
        await connector.stop(timeout_s=5)


def effect(text: str = LUNCH, *, key: str = "k1", kind: str = "event", **where: str) -> Effect:
    address = {"starts": "2026-06-10T15:00", **where}
    destination = Destination(source="cal", kind=kind, address=tuple(address.items()))
    return Effect(id="ef_1", destination=destination, text=text, idempotency_key=key)


async def titles(desk: Desk) -> Sequence[str]:
    text = (await desk.texts()).replace("\r\n ", "")
    return [line for line in text.splitlines() if line.startswith("SUMMARY:")]


async def test_an_event_is_made_and_comes_back_as_ours(desk: Desk) -> None:
    async with watching(desk) as watch:
        receipt = await watch.connector.send(effect(minutes="45", location="Pier 3"))
        assert is_ours(receipt.provider_id)
        (trigger,) = await watch.look()
        assert (trigger.kind, trigger.actor.kind) == ("meeting.created", ActorKind.SELF)
        assert trigger.content.title == "New: Lunch, with; Grüße ✅"
        assert "Bring an umbrella." in trigger.content.text
        facts = dict(trigger.context.facts)
        assert (facts["starts"], facts["ends"]) == ("2026-06-10T15:00:00Z", "2026-06-10T15:45:00Z")
        assert facts["location"] == "Pier 3"
    lines = (await desk.texts()).encode().split(b"\r\n")
    assert all(len(line) <= 75 for line in lines)


@pytest.mark.feature("calendar.write")
async def test_a_second_try_finds_the_first_and_another_key_is_another_event(desk: Desk) -> None:
    async with writer(desk) as connector:
        first = await connector.send(effect())
        again = await connector.send(effect("something else"))
        other = await connector.send(effect(key="k2"))
    assert (first.found, again.found, other.found) == (False, True, False)
    assert first.provider_id == again.provider_id == uid_of("k1") != other.provider_id
    assert len(await titles(desk)) == 2


async def test_an_answer_that_is_lost_is_looked_for(desk: Desk) -> None:
    async with proxied(desk.server.url) as proxy, writer(desk, proxy.url) as connector:
        proxy.after = lambda request, body: cut(request, body) if request.method == "PUT" else None
        assert (await connector.send(effect())).found
    assert len(await titles(desk)) == 1


async def sent(desk: Desk, proxy: DavProxy) -> Receipt:
    async with writer(desk, proxy.url) as connector:
        return await connector.send(effect())


@pytest.mark.parametrize("status", [429, 503])
async def test_a_limit_asks_for_a_later_try(desk: Desk, status: int) -> None:
    async with proxied(desk.server.url) as proxy:
        proxy.rule = lambda r, _b: (
            web.Response(status=status, headers={"Retry-After": "9"}) if r.method == "PUT" else None
        )
        with pytest.raises(RetryableSendError) as error:
            await sent(desk, proxy)
    assert error.value.after_s == 9


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, PermanentSendError), (507, UnknownSendError), (500, UnknownSendError)],
)
async def test_a_refusal_is_what_it_is(desk: Desk, status: int, error: type[Exception]) -> None:
    async with proxied(desk.server.url) as proxy:
        proxy.rule = lambda r, _b: web.Response(status=status) if r.method == "PUT" else None
        with pytest.raises(error):
            await sent(desk, proxy)
    assert await titles(desk) == []


async def test_a_server_that_cannot_be_asked_for_its_calendars_got_nothing(desk: Desk) -> None:
    async with proxied(desk.server.url) as proxy:
        proxy.rule = cut
        with pytest.raises(RetryableSendError):
            await sent(desk, proxy)
    assert await titles(desk) == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (effect(kind="comment"), "No destination"),
        (effect(""), "needs a title"),
        (effect(starts="soon"), "starts must be a moment"),
        (effect(ends="2026-06-10T14:00"), "ends before it starts"),
        (effect(minutes="x"), "minutes must be"),
    ],
)
async def test_what_is_no_event_is_refused_for_good(desk: Desk, given: Effect, why: str) -> None:
    async with writer(desk) as connector:
        with pytest.raises(PermanentSendError, match=why):
            await connector.send(given)


async def test_nothing_in_a_text_becomes_a_line_of_its_own(desk: Desk) -> None:
    evil = "Lunch\r\nX\nATTENDEE:mailto:eve@example.net\nEND:VEVENT"
    async with writer(desk) as connector:
        await connector.send(effect(evil, location="a\r\nATTENDEE:mailto:eve@example.net"))
    lines = (await desk.texts()).splitlines()
    assert not [line for line in lines if line.startswith("ATTENDEE")]
    assert lines.count("END:VEVENT") == 1


async def test_a_calendar_that_is_not_there_is_tried_again(desk: Desk) -> None:
    async with writer(desk) as connector:
        with pytest.raises(RetryableSendError, match="no calendar 'nowhere'"):
            await connector.send(effect(calendar="nowhere"))
