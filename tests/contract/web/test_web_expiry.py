"""What is about to end is said a week ahead; its end stops nobody's work (S5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest

from fixtures.team import Person, browser, give, with_token
from fixtures.web_hub import Client
from upright.store import work
from upright.store.tokens import State

DAY_S: Final = 86_400


@pytest.fixture
async def ann(client: Client) -> AsyncIterator[Person]:
    await give(client, "ann", "operator")
    person = await browser(client, "ann")
    yield person
    await person.session.close()


@pytest.mark.case("XX/expiry")
@pytest.mark.parametrize(
    ("day", "state"),
    [(22, State.ACTIVE), (23, State.ENDING), (29, State.ENDING), (30, State.EXPIRED)],
)
async def test_a_token_that_ends_within_a_week_is_said_so_wherever_one_looks(
    client: Client, ann: Person, day: int, state: State
) -> None:
    await with_token(client, ann, "read")  # for 30 days
    client.behind.clock.passed_s = day * DAY_S + 60
    _, listed = await client.get("/v1/tokens?all=1")
    assert [row["state"] for row in listed] == [state]
    async with client.session.get(client.url + "/metrics") as response:
        said = await response.text()
    assert f"upright_tokens_ending {int(state is State.ENDING)}\n" in said


@pytest.mark.case("XX/expiry")
async def test_whom_it_concerns_reads_of_it_under_needs_you_and_nobody_else_does(
    client: Client, ann: Person
) -> None:
    status, _ = await ann.post("/v1/tokens", {"name": "nightly", "scopes": "read", "days": "7"})
    assert status == 200
    status, html = await ann.get("/needs", Accept="text/html")
    assert (status, b"nightly" in html, b"ends soon" in html) == (200, True, True)
    owner = await browser(client, "local")
    status, html = await owner.get("/needs", Accept="text/html")
    assert (status, b"nightly" in html) == (200, False)
    await owner.session.close()


@pytest.mark.case("XX/expiry")
async def test_the_end_of_a_token_ends_its_stream_between_two_events_and_no_work(
    client: Client, ann: Person
) -> None:
    before = await client.behind.store.read(lambda c: work.read(c, "wk_fix"))
    reader = await with_token(client, ann, "act")
    assert (await reader.get("/v1/me"))[0] == 200
    where = client.url + "/v1/events?after=0"
    async with asyncio.timeout(10), client.session.get(where, headers=reader.headers) as stream:
        told = await stream.content.readuntil(b"event: outbox.sent")
        client.behind.clock.passed_s = 30 * DAY_S + 1
        client.behind.bell.ring()
        told += await stream.content.read()
    assert told.endswith(b"\n\n")
    assert (await reader.get("/v1/me"))[0] == 401
    assert await client.behind.store.read(lambda c: work.read(c, "wk_fix")) == before


async def test_a_program_whose_token_has_ended_is_told_so_and_locks_nobody_out(
    client: Client, ann: Person
) -> None:
    """Several share an address, behind a router or a proxy; a program asks again and again."""
    ended, good = await with_token(client, ann, "read"), await with_token(client, ann, "read")
    _, listed = await ann.get("/v1/tokens")
    assert (await ann.post(f"/v1/tokens/{listed[-1]['id']}/revoke"))[0] == 200
    one, other = [(await each.get("/v1/me"))[0] for each in (ended, good)]
    ended, good = (ended, good) if (one, other) == (401, 200) else (good, ended)
    told = [await ended.get("/v1/me") for _ in range(8)]
    assert {(status, said["code"]) for status, said in told} == {(401, "token.ended")}
    assert (await good.get("/v1/me"))[0] == 200
