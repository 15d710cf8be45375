"""Signing in at a real OpenID provider, with a browser's redirects and cookies (S5)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar

from fixtures.openid import CLIENT_ID, CLIENT_SECRET, OpenId, openid, visit
from fixtures.web_hub import Behind, Client, serving
from upright.api import Secret
from upright.core.admission import Admission
from upright.engine.clock import SystemClock
from upright.web.doors import Terms
from upright.web.fetch import Fetching
from upright.web.oidc import Client as OidcClient
from upright.web.oidc import Provider

TEAM = Admission(
    admins=frozenset({"ada@example.org"}),
    operators=frozenset({"sub:boss"}),
    viewers=frozenset({"@example.org"}),
    runners=frozenset({"ada@example.org"}),
)


@pytest.fixture(scope="module", params=[False, True], ids=["userinfo", "id-token"])
def provider(request: pytest.FixtureRequest) -> Iterator[OpenId]:
    with openid(claims_in_token=request.param) as found:
        yield found


@asynccontextmanager
async def hub(behind: Behind, found: OpenId, admission: Admission) -> AsyncIterator[Client]:
    behind.terms = Terms(admission=admission)
    client = OidcClient(
        issuer=found.issuer,
        client_id=CLIENT_ID,
        secret=Secret(CLIENT_SECRET),
        returns_to=found.returns_to,
    )
    behind.provider = Provider(client, SystemClock(), Fetching(base=found.issuer))
    async with serving(behind.parts(), found.hub_port) as (session, url):
        yield Client(session=session, url=url, behind=behind)
    await behind.store.close()


@pytest.fixture
async def team(behind: Behind, provider: OpenId) -> AsyncIterator[Client]:
    async with hub(behind, provider, TEAM) as client:
        yield client


@asynccontextmanager
async def signed_in(
    client: Client, name: str, path: str = "/sign-in/start"
) -> AsyncIterator[tuple[ClientSession, ClientResponse]]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        response = await visit(browser, client.url + path, name)
        yield browser, response


async def me(client: Client, browser: ClientSession) -> tuple[str, str, bool]:
    async with browser.get(client.url + "/v1/me") as response:
        said = await response.json()
        return said["name"], said["role"], said["exec"]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ada", ("ada@example.org", "admin", True)),
        ("boss", ("boss@example.org", "operator", False)),
        ("eve", ("eve@example.org", "viewer", False)),
    ],
)
async def test_whom_the_configuration_names_comes_in_as_what_it_says(
    team: Client, name: str, known: tuple[str, str, bool]
) -> None:
    async with signed_in(team, name) as (browser, response):
        assert (response.status, response.headers["Location"]) == (303, "/")
        assert await me(team, browser) == known


async def test_an_account_is_joined_with_its_person(team: Client) -> None:
    await team.post("/v1/people/link", {"name": "boss", "id": "*:boss@example.org"})
    async with signed_in(team, "boss") as (browser, _):
        assert await me(team, browser) == ("boss", "operator", False)


async def test_a_person_who_is_named_as_the_machines_owner_is_not_them(team: Client) -> None:
    assert (await team.post("/v1/people", {"name": "local", "kind": "operator"}))[0] == 200
    assert (await team.post("/v1/people/link", {"name": "local", "id": "*:boss@example.org"}))[
        0
    ] == 200
    async with signed_in(team, "boss") as (_, response):
        assert response.status == 403


async def test_whom_nobody_names_stays_out_and_the_trail_says_so(
    behind: Behind, provider: OpenId
) -> None:
    async with hub(behind, provider, Admission()) as client:
        async with signed_in(client, "ada") as (browser, response):
            assert response.status == 403
            async with browser.get(client.url + "/v1/me") as answer:
                assert answer.status == 401
        _, rows = await client.get("/v1/audit")
        assert [row["outcome"] for row in rows] == ["sign_in.not_admitted"]
        assert (await client.get("/v1/accounts"))[1] == []


async def test_an_address_that_was_not_verified_opens_nothing(team: Client) -> None:
    async with signed_in(team, "unverified-ada") as (_, response):
        assert response.status == 403


async def test_the_second_sign_in_is_the_same_account(team: Client) -> None:
    for _ in range(2):
        async with signed_in(team, "ada") as (_, response):
            assert response.status == 303
    _, listed = await team.get("/v1/accounts")
    assert [each["name"] for each in listed] == ["ada@example.org"]


async def test_a_revoked_person_does_not_come_back_by_the_provider(team: Client) -> None:
    async with signed_in(team, "ada"):
        pass
    await team.post("/v1/accounts/ada@example.org/revoke")
    async with signed_in(team, "ada") as (_, response):
        assert response.status == 403


async def test_one_lands_where_one_wanted_to_be(team: Client) -> None:
    async with signed_in(team, "ada", "/sign-in/start?next=/work/wk_fix") as (_, response):
        assert response.headers["Location"] == "/work/wk_fix"
    async with signed_in(team, "ada", "/sign-in/start?next=//evil.example") as (_, response):
        assert response.headers["Location"] == "/"


async def test_a_return_works_once_and_in_the_browser_that_began(team: Client) -> None:
    """Login CSRF: a link with somebody else's code signs nobody in."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        response = await visit(browser, team.url + "/sign-in/start", "ada")
        returned = response.url
        async with browser.get(returned, allow_redirects=False) as again:
            assert again.status == 400
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
        async with browser.get(team.url + "/sign-in/start", allow_redirects=False):
            pass
        async with browser.get(returned, allow_redirects=False) as elsewhere:
            assert elsewhere.status == 400
