"""Changes on a real Radicale: by token, without one, and through servers that misbehave."""

from __future__ import annotations

import pytest
from aiohttp import web

from fixtures.calendars import at, context, said, settings, watching
from fixtures.dav_proxy import DavProxy, cut, proxied
from fixtures.radicale import Desk
from upright.api import ConnectorAuthFailedError, ConnectorNotReadyError
from upright_calendar.connector import CalendarConnector

SYNC = b"sync-collection"
HOUR = "DURATION:PT1H"


async def meeting(desk: Desk, uid: str, when: str, *more: str, title: str = "") -> None:
    await desk.put(uid, at(when), HOUR, f"SUMMARY:{title or uid}", *more)


@pytest.mark.feature("calendar.discovery")
async def test_what_is_made_changed_and_deleted_is_told_once_each(desk: Desk) -> None:
    await meeting(desk, "old", "10 1500")
    async with watching(desk) as watch:
        assert await watch.look() == []
        await meeting(desk, "new", "11 1500", "DTSTAMP:20260601T090000Z")
        assert said(await watch.look()) == ["created New: new"]
        await meeting(desk, "new", "11 1600", "DTSTAMP:20260601T093000Z")
        (updated,) = await watch.look()
        assert said([updated]) == ["updated Changed: new"]
        assert updated.context.edit_of == "new:"
        assert dict(updated.context.facts)["starts"] == "2026-06-11T16:00:00Z"
        await meeting(desk, "new", "11 1600", "DTSTAMP:20260601T095900Z")  # nothing but its stamp
        assert await watch.look() == []
        await desk.delete("new")
        assert said(await watch.look()) == ["deleted Gone: new"]
        await meeting(desk, "old", "10 1500", "STATUS:CANCELLED")
        assert said(await watch.look()) == ["cancelled Cancelled: old"]
        assert await watch.look() == []


@pytest.mark.case("CDAV/203")
@pytest.mark.feature("calendar.lost_token")
async def test_a_token_that_the_server_forgot_costs_nothing_and_repeats_nothing(
    desk: Desk,
) -> None:
    for n in range(5):
        await meeting(desk, f"e{n}", f"1{n} 1500")
    async with proxied(desk.server.url) as proxy, watching(desk, url=proxy.url) as watch:
        assert await watch.look() == []
        desk.server.forget_tokens()
        await desk.delete("e1")
        await meeting(desk, "e7", "17 1500")
        assert sorted(said(await watch.look())) == ["created New: e7", "deleted Gone: e1"]
        assert await watch.look() == []
        await desk.delete("e2")
        assert said(await watch.look()) == ["deleted Gone: e2"]


@pytest.mark.case("CDAV/203")
@pytest.mark.feature("calendar.lost_token")
@pytest.mark.parametrize("status", [403, 409, 418, 500, 507])
async def test_a_sync_that_is_refused_after_a_delete_falls_back_to_comparing(
    desk: Desk, status: int
) -> None:
    await meeting(desk, "stays", "10 1500")
    await meeting(desk, "goes", "11 1500")
    async with proxied(desk.server.url) as proxy, watching(desk, url=proxy.url) as watch:

        def refuse(_request: web.Request, body: bytes) -> web.Response | None:
            return web.Response(status=status) if SYNC in body else None

        await desk.delete("goes")
        proxy.rule = refuse
        assert said(await watch.look()) == ["deleted Gone: goes"]
        assert await watch.look() == []
        proxy.rule = lambda _request, _body: None
        await meeting(desk, "stays", "12 1500")
        assert said(await watch.look()) == ["updated Changed: stays"]


async def test_a_server_without_sync_is_compared_by_its_etags_and_not_asked_again(
    desk: Desk,
) -> None:
    await meeting(desk, "one", "10 1500")
    async with proxied(desk.server.url) as proxy:
        proxy.rule = lambda _r, body: web.Response(status=405) if SYNC in body else None
        async with watching(desk, url=proxy.url) as watch:
            asked = proxy.count("REPORT", SYNC)
            await meeting(desk, "two", "11 1500")
            assert said(await watch.look()) == ["created New: two"]
            assert proxy.count("REPORT", SYNC) == asked == 1
            fetched = proxy.count("REPORT", b"multiget")
            assert await watch.look() == []
            assert proxy.count("REPORT", b"multiget") == fetched


@pytest.mark.feature("calendar.discovery")
@pytest.mark.parametrize("path", ["", "{user}/", "{user}/desk/"])
async def test_the_calendars_are_found_from_each_address(desk: Desk, path: str) -> None:
    await desk.make("tasks", holds="VTODO")
    await desk.make("pläne")
    url = desk.server.url + path.format(user=desk.user)
    connector = CalendarConnector("cal", settings(url, desk.user))
    await connector.start(context())
    try:
        probe = await connector.validate()
        names = {"desk"} if path.endswith("desk/") else {"desk", "pläne"}
        assert set(probe.scopes) == names
        assert probe.ok
    finally:
        await connector.stop(timeout_s=5)


@pytest.mark.feature("calendar.discovery")
async def test_the_well_known_address_and_redirects_are_followed(desk: Desk) -> None:
    async with proxied(desk.server.url) as proxy:

        def elsewhere(request: web.Request, _body: bytes) -> web.Response | None:
            if request.path == "/.well-known/caldav":
                return web.Response(status=301, headers={"Location": "/"})
            if request.path == "/index.html":
                return web.Response(status=404)
            return None

        proxy.rule = elsewhere
        async with watching(desk, url=f"{proxy.url}index.html") as watch:
            await meeting(desk, "new", "11 1500")
            assert said(await watch.look()) == ["created New: new"]


async def test_only_the_named_calendars_are_read(desk: Desk) -> None:
    await desk.make("other")
    async with watching(desk, calendars=("other",)) as watch:
        await meeting(desk, "mine", "11 1500")
        await desk.put("theirs", at("11 1500"), "SUMMARY:x", calendar="other")
        (trigger,) = await watch.look()
        assert dict(trigger.context.facts)["calendar"] == "other"
    with pytest.raises(ConnectorNotReadyError, match="None of these calendars is wanted: desk"):
        await look_once(desk, calendars=("nowhere",))


async def test_a_wrong_password_asks_for_a_person(desk: Desk) -> None:
    made = context()
    made.secrets["p"] = "wrong"
    connector = CalendarConnector("cal", settings(desk.server.url, desk.user))
    await connector.start(made)
    try:
        with pytest.raises(ConnectorAuthFailedError, match="refuses the user or the password"):
            await connector.listen()
    finally:
        await connector.stop(timeout_s=5)


async def look_once(desk: Desk, *, url: str = "", **more: object) -> None:
    connector = CalendarConnector("cal", settings(url or desk.server.url, desk.user, **more))
    await connector.start(context())
    try:
        await connector.listen()
    finally:
        await connector.stop(timeout_s=5)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
            "no XML",
        ),
        (b"<html>", "no XML"),
        (b"<html></html>", "no multistatus"),
        (b"x" * 3_000, "longer than 2048 bytes"),
    ],
)
async def test_an_answer_that_may_not_be_read_is_said_in_a_sentence(
    desk: Desk, body: bytes, why: str
) -> None:
    async with proxied(desk.server.url) as proxy:
        proxy.rule = lambda _request, _body: web.Response(status=207, body=body)
        with pytest.raises(ConnectorNotReadyError, match=why):
            await look_once(desk, url=proxy.url, max_body_bytes=2_048)


async def test_while_the_server_is_away_what_is_known_stands(desk: Desk) -> None:
    await meeting(desk, "soon", "01 1010")
    async with (
        proxied(desk.server.url) as proxy,
        watching(desk, url=proxy.url, starts=True) as watch,
    ):
        proxy.rule = cut
        await meeting(desk, "new", "11 1500")
        assert said(await watch.sleep(660)) == ["starts Starts: soon"]
        proxy.rule = lambda _request, _body: None
        assert said(await watch.sleep(90)) == ["created New: new"]


async def test_a_server_that_stays_away_is_the_sources_trouble(desk: Desk) -> None:
    async with proxied(desk.server.url) as proxy:
        with pytest.raises(ExceptionGroup) as raised:
            await watched_for_half_an_hour(desk, proxy)
    (error,) = raised.value.exceptions
    assert isinstance(error, ConnectorNotReadyError)
    assert error.retry_after_s == 7


async def watched_for_half_an_hour(desk: Desk, proxy: DavProxy) -> None:
    async with watching(desk, url=proxy.url) as watch:
        proxy.rule = lambda _r, _b: web.Response(status=503, headers={"Retry-After": "7"})
        await watch.sleep(1_800)


async def test_an_event_that_can_no_longer_be_read_is_kept_as_it_was(desk: Desk) -> None:
    await meeting(desk, "one", "11 1500")
    made = context()
    async with proxied(desk.server.url) as proxy, watching(desk, made, url=proxy.url) as watch:

        def spoil(_request: web.Request, body: bytes) -> web.Response | None:
            if b"multiget" not in body:
                return None
            return web.Response(
                status=207,
                body=f'<d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
                f"<d:response><d:href>/{desk.user}/desk/one.ics</d:href><d:propstat><d:prop>"
                f'<d:getetag>"x"</d:getetag><c:calendar-data>BEGIN:VCALENDAR\nBEGIN:VEVENT\n'
                f"UID:one\nDTSTART:20261345T990000Z\nEND:VEVENT\nEND:VCALENDAR</c:calendar-data>"
                f"</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
                f"</d:multistatus>".encode(),
            )

        proxy.rule = spoil
        await meeting(desk, "one", "12 1500")
        assert await watch.look() == []
        assert "can't be read" in watch.connector.health().gap
    async with proxied(desk.server.url) as proxy:
        proxy.rule = spoil
        async with watching(desk, made, url=proxy.url) as watch:
            assert await watch.look() == []
            assert len(made.accepted) == 0
