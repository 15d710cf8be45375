"""The API over stored things as a whole: events, backups, raw bytes, replays."""

from __future__ import annotations

import pytest

from fixtures.web_hub import AUTH, Client, behind, client, story_file
from upright.store.errors import DiskFullError, NotNowError

__all__ = ["behind", "client", "story_file"]


async def test_the_last_events_are_listed_in_order_and_go_on_behind_a_number(
    client: Client,
) -> None:
    events = await client.read("/v1/events/list")
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(numbers)
    assert [e["seq"] for e in await client.read("/v1/events/list?limit=1")] == numbers[-1:]
    assert await client.read(f"/v1/events/list?after={numbers[-1]}") == []


async def test_a_backup_is_sent_whole(client: Client) -> None:
    async with client.session.get(client.url + "/v1/backup", headers=AUTH) as response:
        body = await response.read()
    assert (response.status, response.content_type) == (200, "application/x-tar")
    assert len(body) == int(response.headers["Content-Length"])
    assert client.behind.asked == [("backup",)]


async def test_no_backup_without_room_for_it(client: Client) -> None:
    client.behind.raises = DiskFullError("/srv", 1)
    status, said = await client.get("/v1/backup")
    assert (status, said["code"]) == (503, "store.disk_full")


@pytest.mark.clause("B1.2")
async def test_the_bytes_of_a_trigger_are_sent_as_bytes_and_never_as_what_they_say(
    client: Client,
) -> None:
    async with client.session.get(client.url + "/v1/raw/tr_red", headers=AUTH) as response:
        body = await response.read()
    assert (response.status, body) == (200, b"raw")
    assert response.content_type == "application/octet-stream"
    assert response.headers["X-Media-Type"] == "application/json"
    assert client.behind.asked == [("raw", "pl_red")]


@pytest.mark.clause("B7.3")
async def test_what_was_pruned_says_when(client: Client) -> None:
    client.behind.pruned = "pruned on 2026-07-02"
    status, said = await client.get("/v1/raw/pl_red")
    assert (status, said["code"]) == (410, "payload.pruned")
    assert said["detail"] == "pl_red was pruned on 2026-07-02"


async def test_only_a_trigger_came_as_bytes(client: Client) -> None:
    assert (await client.get("/v1/raw/wk_fix"))[0] == 404


async def test_a_replay_asks_for_one_trigger_or_for_a_span(client: Client) -> None:
    await client.read("/v1/replay?trigger=tr_red")
    await client.read("/v1/replay?since=5&limit=7")
    assert client.behind.asked == [("replay", "tr_red", 0, 10_000), ("replay", "", 5, 7)]


async def test_a_held_trigger_is_offered_again_and_another_is_refused(client: Client) -> None:
    assert await client.post("/v1/triggers/tr_red/again") == (200, {"did": "again"})
    client.behind.raises = NotNowError("tr_red", "it is started")
    status, _ = await client.post("/v1/triggers/tr_red/again")
    assert status >= 400
