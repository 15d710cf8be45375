"""The event stream: durable numbers, no gap after a reconnect, an end when the hub ends."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from typing import Final

import pytest
from aiohttp import ClientResponse, ClientSession
from sqlmodel import SQLModel
from yarl import URL

from fixtures.eventually import eventually_awaited
from fixtures.store_rows import put
from fixtures.team import browser, give
from fixtures.web_hub import AUTH, TOKEN, Behind, Client, serving
from upright.store import retention, tables_world
from upright.store.unit import Unit
from upright.web.parts import WebLimits

TOKEN_LINE: Final = f"Authorization: Bearer {TOKEN}"


async def next_event(response: ClientResponse) -> dict[str, str]:
    """Read one event; comments are skipped."""
    fields: dict[str, str] = {}
    while True:
        line = (await response.content.readline()).decode().rstrip("\n")
        if not line and fields:
            return fields
        name, colon, value = line.partition(": ")
        if name and colon:
            fields[name] = value


async def happen(behind: Behind, stop: str) -> None:
    await behind.store.write(lambda c: put(c, tables_world.Event(at_ms=1, stop=stop)))
    behind.bell.ring()


async def test_a_reader_resumes_behind_the_last_event_it_saw(client: Client) -> None:
    headers = {**AUTH, "Last-Event-ID": "7"}
    async with client.session.get(f"{client.url}/v1/events", headers=headers) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first, second = await next_event(response), await next_event(response)
        assert [first["id"], second["id"]] == ["8", "9"]
        assert first["event"] == "outbox.sent"
        assert json.loads(first["data"])["outbox_id"] == "ob_fixed"
        await happen(client.behind, "turn.began")
        assert (await next_event(response))["id"] == "10"


@pytest.mark.case("CVE-2026-25253")
@pytest.mark.parametrize(
    "said", [{"Origin": "http://127.0.0.1:1"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}]
)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/inbox"])
async def test_a_page_of_another_origin_reads_nothing_by_a_visitors_cookie(
    client: Client, path: str, said: dict[str, str]
) -> None:
    """A browser takes another port of this machine for the same site, and sends the cookie."""
    await give(client, "ann", "viewer")
    ann = await browser(client, "ann")
    status, told = await ann.get(path, **said)
    assert (status, told["code"]) == (403, "csrf.origin")
    assert (await ann.get("/v1/inbox", **{"Sec-Fetch-Site": "same-origin"}))[0] == 200
    await ann.session.close()


async def test_without_a_number_only_what_is_new_comes(client: Client) -> None:
    async with client.session.get(f"{client.url}/v1/events", headers=AUTH) as response:
        assert (await response.content.readline()) == b": hello\n"
        await happen(client.behind, "turn.began")
        assert (await next_event(response))["id"] == "10"


async def test_what_was_committed_without_a_ring_is_found_by_looking(client: Client) -> None:
    async with client.session.get(f"{client.url}/v1/events?after=9", headers=AUTH) as response:
        await client.behind.store.write(lambda c: put(c, tables_world.Event(at_ms=1, stop="x.y")))
        assert (await next_event(response))["event"] == "x.y"


async def test_a_quiet_stream_says_that_it_is_alive(client: Client) -> None:
    async with client.session.get(f"{client.url}/v1/events", headers=AUTH) as response:
        assert await response.content.readuntil(b": still here\n\n")


async def test_a_wrong_number_is_refused(client: Client) -> None:
    status, _ = await client.get("/v1/events", **{"Last-Event-ID": "x"})
    assert status == 400


async def test_the_stream_ends_when_the_hub_ends(behind: Behind) -> None:
    async with (
        asyncio.timeout(5),
        asyncio.TaskGroup() as group,
        serving(behind.parts()) as (session, url),
    ):
        response = await session.get(f"{url}/v1/events", headers=AUTH)
        await response.content.readline()
        reading = group.create_task(response.content.read())
        # leaving the block ends the hub
    response.close()
    assert reading.result() == b"\n"  # the whole of what was sent, and a clean end
    await behind.store.close()


# ------------------------------------------------------------------ what is gone, and who lags
async def prune(behind: Behind, before_ms: int, *first: SQLModel) -> None:
    """Insert rows, and prune, in one commit."""

    def unit(u: Unit) -> None:
        put(u.c, *first)
        retention.events(u, before_ms)

    await behind.units.write(unit)


async def test_who_missed_what_was_pruned_is_told_where_to_start_anew(client: Client) -> None:
    await prune(client.behind, 275)  # the events 1 to 5
    status, said = await client.get("/v1/events", **{"Last-Event-ID": "4"})
    assert (status, said["code"], said["start_at"]) == (410, "events.gone", 5)
    headers = {**AUTH, "Last-Event-ID": str(said["start_at"])}
    async with client.session.get(f"{client.url}/v1/events", headers=headers) as response:
        assert [(await next_event(response))["id"] for _ in range(4)] == ["6", "7", "8", "9"]


async def test_who_has_seen_all_that_was_pruned_goes_on(client: Client) -> None:
    await prune(client.behind, 275)
    async with client.session.get(f"{client.url}/v1/events?after=5", headers=AUTH) as response:
        assert (await next_event(response))["id"] == "6"


async def test_a_number_of_a_later_past_is_told_where_this_one_ends(client: Client) -> None:
    status, said = await client.get("/v1/events?after=12")  # the database was restored since
    assert (status, said["code"], said["start_at"]) == (410, "events.gone", 9)


async def test_a_reader_whose_next_events_are_pruned_under_it_is_not_lied_to(
    behind: Behind,
) -> None:
    async with serving(behind.parts()) as (session, url):
        response = await session.get(f"{url}/v1/events", headers=AUTH)
        await response.content.readline()
        three = (tables_world.Event(at_ms=1, stop="x.y"),) * 3
        await prune(behind, 10**6, *three)  # all but the last are gone before the stream looks
        async with asyncio.timeout(5):
            rest = await response.content.read()
        assert b"id: 12" not in rest  # it ends, and the reader asks again behind number 9
        again = await session.get(f"{url}/v1/events?after=9", headers=AUTH)
        assert (again.status, (await again.json(content_type=None))["start_at"]) == (410, 11)
        response.close()
    await behind.store.close()


async def test_a_reader_that_does_not_read_is_cut_off_and_the_others_go_on(behind: Behind) -> None:
    limits = WebLimits(events_poll_s=0.05, events_lag_s=0.3)
    async with serving(replace(behind.parts(), limits=limits)) as (session, url):
        lazy = socket.create_connection((URL(url).host or "", URL(url).port or 0))
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = f"GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n{TOKEN_LINE}\r\n\r\n"
        lazy.sendall(asked.encode())
        big = json.dumps({"text": "x" * 100_000})
        event = tables_world.Event(at_ms=1, stop="x.y", data_json=big)
        await behind.store.write(lambda c: put(c, *(event,) * 100))  # 10 MB, more than any buffer
        async with session.get(f"{url}/v1/events?after=100", headers=AUTH) as response:
            assert (await next_event(response))["id"] == "101"
            assert await eventually_awaited(lambda: cut(session, url), within_s=10) == 1
        lazy.close()
    await behind.store.close()


async def cut(session: ClientSession, url: str) -> int | None:
    async with session.get(f"{url}/metrics") as response:
        text = await response.text()
    (line,) = [line for line in text.splitlines() if line.startswith("upright_event_streams_cut")]
    return int(float(line.split()[1])) or None


async def test_one_account_has_so_many_streams_and_no_more(behind: Behind) -> None:
    limits = WebLimits(events_poll_s=0.05, max_streams=2)
    async with serving(replace(behind.parts(), limits=limits)) as (session, url):
        first, second = [await session.get(f"{url}/v1/events", headers=AUTH) for _ in range(2)]
        refused = await session.get(f"{url}/v1/events", headers=AUTH)
        said = await refused.json(content_type=None)
        assert (refused.status, said["code"]) == (429, "events.too_many")
        assert refused.headers["Retry-After"] == "10"
        first.close()
        await eventually_awaited(lambda: opened(session, url))
        second.close()
    await behind.store.close()


async def opened(session: ClientSession, url: str) -> bool:
    async with session.get(f"{url}/v1/events", headers=AUTH) as response:
        return response.status == 200
