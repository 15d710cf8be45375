"""Nobody hands out more than they hold: an admin without the grant to run commands (S5)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from fixtures.team import Person, browser, give, link_of, with_token
from fixtures.web_hub import Client
from upright.store import accounts
from upright.store.tables_people import AUDIT

EXEC = {"role": "operator", "exec": "yes"}


@pytest.fixture
async def admin(client: Client) -> AsyncIterator[Person]:
    """An admin by whose word no command runs; and cal, by whose word some do."""
    await give(client, "ann", "admin")
    await give(client, "cal", "operator", runs="yes")
    person = await browser(client, "ann")
    yield person
    await person.session.close()


@pytest.mark.parametrize(
    "asked",
    [
        ("/v1/accounts/ann/give", {"role": "admin", "exec": "yes"}, "exec.not_yours"),
        ("/v1/accounts/eve/give", EXEC, "exec.not_yours"),
        ("/v1/accounts/cal/link", None, "account.above_yours"),
        ("/v1/accounts/local/link", None, "account.above_yours"),
        ("/v1/people/link", {"name": "cal", "id": "*:ann@example.org"}, "account.above_yours"),
        ("/v1/people/link", {"name": "local", "id": "oidc:1815"}, "account.above_yours"),
    ],
)
async def test_an_admin_without_the_grant_comes_by_it_in_no_way(
    client: Client, admin: Person, asked: tuple[str, object, str]
) -> None:
    path, body, code = asked
    status, said = await admin.post(path, body)
    assert (status, said["code"]) == (403, code)
    query = sa.select(AUDIT.c.who, AUDIT.c.outcome).order_by(AUDIT.c.seq.desc()).limit(1)
    row = await client.behind.store.read(lambda c: c.execute(query).one())
    assert (row.who, row.outcome) == ("ann", code)
    named = await client.behind.store.read(accounts.listed)
    assert [each.name for each in named if each.runs] == ["cal"]


async def test_a_token_without_the_grant_hands_it_to_nobody_either(client: Client) -> None:
    await give(client, "cal", "admin", runs="yes")
    cal = await browser(client, "cal")
    narrow = await with_token(client, cal, "admin")
    assert (await narrow.post("/v1/accounts/eve/give", EXEC))[1]["code"] == "exec.not_yours"
    assert (await narrow.post("/v1/accounts/cal/link"))[1]["code"] == "account.above_yours"
    assert (await cal.post("/v1/accounts/eve/give", EXEC))[0] == 200
    assert (await cal.post("/v1/accounts/eve/link"))[0] == 200
    assert (await cal.post("/v1/accounts/local/link"))[1]["code"] == "account.above_yours"
    await cal.session.close()


async def test_an_admin_manages_whom_the_grant_was_given_to(admin: Person) -> None:
    """Keeping a grant gives none; taking it, and taking everything, needs none."""
    kept = {"role": "viewer", "exec": "yes"}
    assert (await admin.post("/v1/accounts/cal/give", kept))[1]["exec"] is True
    assert (await admin.post("/v1/accounts/cal/revoke"))[0] == 200
    assert (await admin.post("/v1/accounts/cal/give", kept))[1]["code"] == "exec.not_yours"
    assert (await admin.post("/v1/accounts/cal/give", {**kept, "exec": "no"}))[0] == 200
    assert (await admin.post("/v1/accounts/cal/link"))[0] == 200


async def test_a_link_made_for_a_role_does_not_come_in_as_a_higher_one(
    client: Client, admin: Person
) -> None:
    await give(client, "eve", "viewer")
    path = await link_of(client, "eve")
    await give(client, "eve", "operator", runs="yes")
    async with client.session.get(client.url + path, allow_redirects=False) as response:
        assert response.status == 410
