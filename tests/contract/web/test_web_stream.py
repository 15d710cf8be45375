"""The event stream: durable numbers, no gap after a reconnect, an end when the hub ends."""

from __future__ import annotations

import asyncio
import json

from aiohttp import ClientResponse

from fixtures.store_rows import put
from fixtures.web_hub import AUTH, Behind, Client, serving
from upright.store import tables_world


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
