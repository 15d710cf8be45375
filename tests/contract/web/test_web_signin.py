"""Who comes in, by which door, as what, and how they go out again (S5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest
from aiohttp import ClientSession, CookieJar

from fixtures.team import Person, browser, give, link_of, with_token
from fixtures.web_hub import AUTH, Behind, Client, serving
from upright.web.doors import Terms
from upright.web.signin import own_path

DAY_S: Final = 86_400


@pytest.fixture
async def ann(client: Client) -> AsyncIterator[Person]:
    await give(client, "ann", "operator")
    person = await browser(client, "ann")
    yield person
    await person.session.close()


# ------------------------------------------------------------------ links
async def test_a_link_brings_its_account_in_once(client: Client, ann: Person) -> None:
    status, me = await ann.get("/v1/me")
    assert (status, me["name"], me["role"], me["exec"], me["via"]) == (
        200,
        "ann",
        "operator",
        False,
        "session",
    )
    path = await link_of(client, "ann")
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        async with session.get(client.url + path, allow_redirects=False) as first:
            assert (first.status, first.headers["Location"]) == (303, "/")
        async with session.get(client.url + path, allow_redirects=False) as second:
            assert second.status == 410
            assert "Set-Cookie" not in second.headers


async def test_of_two_visits_at_once_one_comes_in(client: Client) -> None:
    await give(client, "ann", "viewer")
    path = await link_of(client, "ann")

    async def visit() -> int:
        async with (
            ClientSession() as session,
            session.get(client.url + path, allow_redirects=False) as response,
        ):
            return response.status

    async with asyncio.TaskGroup() as group:
        visits = [group.create_task(visit(), name=f"visit {n}") for n in range(4)]
    assert sorted(task.result() for task in visits) == [303, 410, 410, 410]


async def test_a_link_is_good_for_its_time_only(client: Client) -> None:
    path = await link_of(client, "local")
    client.behind.clock.passed_s = 601
    async with client.session.get(client.url + path) as response:
        assert response.status == 410


async def test_a_link_of_another_site_is_not_followed(client: Client) -> None:
    path = await link_of(client, "local")
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with client.session.get(client.url + path, headers=headers) as response:
        assert response.status == 403


async def test_the_owners_link_works_on_loopback_alone(client: Client) -> None:
    path = await link_of(client, "local")
    async with client.session.get(
        client.url + path, headers={"Host": "hub.example.org"}
    ) as response:
        assert response.status == 410


async def test_the_link_is_no_token_and_the_cookie_is_no_bearers(client: Client) -> None:
    path = await link_of(client, "local")
    code = path.rpartition("/")[2]
    status, _ = await client.get("/v1/status", Authorization=f"Bearer {code}")
    assert status == 401


# ------------------------------------------------------------------ cookies
async def test_a_cookie_is_kept_from_scripts_and_from_other_sites(client: Client) -> None:
    path = await link_of(client, "local")
    async with client.session.get(client.url + path, allow_redirects=False) as response:
        said = response.headers["Set-Cookie"]
    assert said.startswith("upright=")
    assert "HttpOnly" in said
    assert "SameSite=Lax" in said
    assert "Secure" not in said


async def test_where_browsers_come_by_https_the_cookie_goes_there_alone(behind: Behind) -> None:
    behind.terms = Terms(origin="https://hub.example.org")
    async with serving(behind.parts()) as (session, url):
        client = Client(session=session, url=url, behind=behind)
        path = await link_of(client, "local")
        async with session.get(url + path, allow_redirects=False) as response:
            said = response.headers["Set-Cookie"]
    assert said.startswith("__Host-upright=")
    assert "Secure" in said
    assert "Path=/" in said
    await behind.store.close()


async def test_the_cookie_is_stored_as_a_hash(client: Client, ann: Person) -> None:
    cookie = next(iter(ann.session.cookie_jar)).value
    stored = client.behind.store.path.read_bytes()
    wal = client.behind.store.path.with_name(client.behind.store.path.name + "-wal")
    stored += wal.read_bytes() if wal.exists() else b""
    assert cookie.encode() not in stored


async def test_a_browser_that_brings_a_cookie_gets_another_one_at_sign_in(client: Client) -> None:
    """Session fixation: what somebody has planted is worth nothing afterwards."""
    path = await link_of(client, "local")
    planted = {"Cookie": "upright=planted"}
    async with client.session.get(
        client.url + path, headers=planted, allow_redirects=False
    ) as response:
        assert "planted" not in response.headers["Set-Cookie"]
    async with client.session.get(client.url + "/v1/me", headers=planted) as response:
        assert response.status == 401


async def test_signing_in_again_ends_what_the_browser_had_before(
    client: Client, ann: Person
) -> None:
    before = next(iter(ann.session.cookie_jar)).value
    path = await link_of(client, "ann")
    async with ann.session.get(client.url + path, allow_redirects=False) as response:
        assert response.status == 303
    async with client.session.get(
        client.url + "/v1/me", headers={"Cookie": f"upright={before}"}
    ) as response:
        assert (response.status, (await response.json())["code"]) == (401, "sign_in.ended")


@pytest.mark.parametrize(("steps_s", "status"), [([43_000, 43_000], 200), ([43_201], 401)])
async def test_an_unused_browser_is_signed_out_and_a_used_one_is_not(
    client: Client, ann: Person, steps_s: list[int], status: int
) -> None:
    found = 0
    for step_s in steps_s:
        client.behind.clock.passed_s += step_s
        found, _ = await ann.get("/v1/me")
    assert found == status


async def test_no_sign_in_outlives_its_absolute_end(client: Client, ann: Person) -> None:
    for _ in range(27):
        client.behind.clock.passed_s += DAY_S / 2 - 10
        assert (await ann.get("/v1/me"))[0] == 200
    client.behind.clock.passed_s += DAY_S / 2
    assert (await ann.get("/v1/me"))[0] == 401


async def test_who_signs_out_is_out(client: Client, ann: Person) -> None:
    cookie = next(iter(ann.session.cookie_jar)).value
    async with ann.session.post(
        client.url + "/sign-out", headers=ann.headers, allow_redirects=False
    ) as response:
        assert (response.status, response.headers["Location"]) == (303, "/sign-in")
    async with client.session.get(
        client.url + "/v1/me", headers={"Cookie": f"upright={cookie}"}
    ) as response:
        assert response.status == 401


async def test_browsers_are_listed_and_ended_by_their_owner(client: Client, ann: Person) -> None:
    other = await browser(client, "ann")
    _, listed = await ann.get("/v1/sign-ins")
    assert [each["this"] for each in listed].count(True) == 1
    assert all("hash" not in each for each in listed)
    theirs = next(each["id"] for each in listed if not each["this"])
    assert (await ann.post(f"/v1/sign-ins/{theirs}/end"))[0] == 200
    assert (await other.get("/v1/me"))[0] == 401
    await other.session.close()


# ------------------------------------------------------------------ other sites
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"X-CSRF-Token": ""}, "csrf.token"),
        ({"X-CSRF-Token": "0" * 64}, "csrf.token"),
        ({"Origin": "https://evil.example"}, "csrf.origin"),
        ({"Origin": "null"}, "csrf.origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "csrf.origin"),
        ({"Sec-Fetch-Site": "same-site"}, "csrf.origin"),
    ],
)
async def test_another_site_does_nothing_with_a_browsers_cookie(
    client: Client, ann: Person, headers: dict[str, str], code: str
) -> None:
    status, said = await ann.post("/v1/sessions/se_fix/stop", None, **headers)
    assert (status, said["code"]) == (403, code)
    assert client.behind.asked == []


async def test_a_page_of_the_hub_does(client: Client, ann: Person) -> None:
    headers = {"Origin": client.url, "Sec-Fetch-Site": "same-origin"}
    status, _ = await ann.post("/v1/sessions/se_fix/stop", None, **headers)
    assert (status, client.behind.asked) == (200, [("stop", "se_fix")])


async def test_a_form_brings_its_token_in_a_field(client: Client, ann: Person) -> None:
    fields = {"csrf": ann.headers["X-CSRF-Token"]}
    async with ann.session.post(client.url + "/v1/sessions/se_fix/stop", data=fields) as response:
        assert response.status == 200
    async with ann.session.post(
        client.url + "/v1/sessions/se_fix/stop", data={"csrf": "x"}
    ) as response:
        assert response.status == 403


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/\n/evil.example",
        "/sign-in/start",
        "/v1/backup",
        "evil",
        "",
        "http:/evil.example",
        "///evil.example",
        "https:evil.example",
        "/\t/evil.example",
        "\t//evil.example",
        " //evil.example",
        "/\u2028/evil.example",
        "/a\\..\\evil",
        "data:text/html,x",
    ],
)
def test_after_sign_in_one_never_lands_elsewhere(wanted: str) -> None:
    assert own_path(wanted) == "/"


def test_after_sign_in_one_lands_where_one_wanted_to_be() -> None:
    assert own_path("/work/wk_1?tab=log") == "/work/wk_1?tab=log"


# ------------------------------------------------------------------ tokens
async def test_a_token_may_what_its_scopes_say_and_no_more(client: Client, ann: Person) -> None:
    reader = await with_token(client, ann, "read")
    assert (await reader.get("/v1/inbox"))[0] == 200
    status, said = await reader.post("/v1/sessions/se_fix/stop")
    assert (status, said["code"]) == (403, "role.too_low")
    actor = await with_token(client, ann, "act")
    assert (await actor.post("/v1/sessions/se_fix/stop"))[0] == 200


async def test_nobody_makes_a_token_that_may_more_than_they_do(client: Client, ann: Person) -> None:
    for scopes in ("admin", "act exec"):
        body = {"name": "t", "scopes": scopes, "days": "1"}
        status, said = await ann.post("/v1/tokens", body)
        assert (status, said["code"]) == (403, "role.too_low")
    reader = await with_token(client, ann, "read")
    status, _ = await reader.post("/v1/tokens", {"name": "t", "scopes": "act", "days": "1"})
    assert status == 403


@pytest.mark.parametrize(
    "body",
    [
        {"name": "t", "scopes": "read", "days": "0"},
        {"name": "t", "scopes": "read", "days": "366"},
        {"name": "t", "scopes": "read", "days": "ten"},
        {"name": "t", "scopes": "exec", "days": "1"},
        {"name": "t", "scopes": "write", "days": "1"},
        {"name": "t" * 101, "scopes": "read", "days": "1"},
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(ann: Person, body: dict[str, str]) -> None:
    assert (await ann.post("/v1/tokens", body))[0] == 422


async def test_a_token_is_shown_once_known_by_its_form_and_kept_as_a_hash(
    client: Client, ann: Person
) -> None:
    _, made = await ann.post("/v1/tokens", {"name": "ci", "scopes": "read", "days": "1"})
    assert made["token"].startswith("uprt_")
    _, listed = await ann.get("/v1/tokens")
    assert [each["name"] for each in listed] == ["ci"]
    assert made["token"] not in str(listed)
    assert not any("hash" in each for each in listed)


async def test_a_token_ends_by_its_time_and_by_its_owner(client: Client, ann: Person) -> None:
    reader = await with_token(client, ann, "read")
    _, (listed,) = await ann.get("/v1/tokens")
    assert (await ann.post(f"/v1/tokens/{listed['id']}/revoke"))[0] == 200
    assert (await reader.get("/v1/me"))[0] == 401
    later = await with_token(client, ann, "read")
    client.behind.clock.passed_s = 31 * DAY_S
    assert (await later.get("/v1/me"))[0] == 401


async def test_a_token_of_somebody_else_is_not_there(client: Client, ann: Person) -> None:
    await give(client, "cal", "operator")
    cal = await browser(client, "cal")
    await with_token(client, ann, "read")
    _, (listed,) = await ann.get("/v1/tokens")
    assert (await cal.post(f"/v1/tokens/{listed['id']}/revoke"))[0] == 404
    assert (await cal.get("/v1/tokens"))[1] == []
    assert (await cal.get("/v1/tokens?all=1"))[0] == 403
    await cal.session.close()


@pytest.mark.parametrize("name", ["access_token", "token", "api_key"])
async def test_a_token_in_an_address_is_refused(client: Client, name: str) -> None:
    status, said = await client.get(f"/v1/status?{name}=t-o-k-e-n")
    assert (status, said["code"]) == (400, "token.in_url")


# ------------------------------------------------------------------ roles
@pytest.mark.parametrize(
    ("role", "path", "code"),
    [
        ("viewer", "/v1/sessions/se_fix/stop", "role.too_low"),
        ("viewer", "/v1/requests/rq_branch/approve", "role.too_low"),
        ("operator", "/v1/accounts/ann/give", "role.too_low"),
        ("operator", "/v1/people", "role.too_low"),
        ("operator", "/v1/devices/dv_box/share", "exec.missing"),
        ("admin", "/v1/devices/dv_box/share", "exec.missing"),
    ],
)
async def test_nobody_does_more_than_their_role_and_grant_allow(
    client: Client, role: str, path: str, code: str
) -> None:
    await give(client, "ann", role)
    ann = await browser(client, "ann")
    status, said = await ann.post(path, {"role": "admin", "exec": "yes"})
    assert (status, said["code"]) == (403, code)
    assert client.behind.asked == []
    await ann.session.close()


async def test_the_grant_to_run_commands_is_given_by_name(client: Client) -> None:
    await give(client, "ann", "operator", runs="yes")
    ann = await browser(client, "ann")
    status, _ = await ann.post("/v1/devices/dv_box/share", {"person": "cal"})
    assert (status, client.behind.asked) == (200, [("share", "dv_box", "cal")])
    await ann.session.close()


async def test_a_role_that_is_lowered_holds_at_once(client: Client, ann: Person) -> None:
    await give(client, "ann", "viewer")
    assert (await ann.post("/v1/sessions/se_fix/stop"))[0] == 403


async def test_a_revoked_person_is_out_at_once_and_stays_out(client: Client, ann: Person) -> None:
    reader = await with_token(client, ann, "read")
    path = await link_of(client, "ann")
    assert (await client.post("/v1/accounts/ann/revoke"))[0] == 200
    assert (await ann.get("/v1/me"))[0] == 401
    assert (await reader.get("/v1/me"))[0] == 401
    async with client.session.get(client.url + path) as response:
        assert response.status == 410
    assert (await client.post("/v1/accounts/ann/link"))[0] == 409


async def test_a_stream_of_a_revoked_person_ends(client: Client, ann: Person) -> None:
    async with ann.session.get(client.url + "/v1/events") as stream:
        assert await stream.content.readline() == b": hello\n"
        await client.post("/v1/accounts/ann/revoke")
        async with asyncio.timeout(5):
            rest = await stream.content.read()
    assert b"id: " not in rest.partition(b"account.revoked")[2].partition(b"\n\n")[2]


async def test_the_owner_of_the_machine_is_no_account(client: Client) -> None:
    for path, body in (
        ("/v1/accounts/local/revoke", None),
        ("/v1/accounts/local/give", {"role": "viewer", "exec": "no"}),
    ):
        assert (await client.post(path, body))[0] == 409


# ------------------------------------------------------------------ too many tries
async def test_whoever_guesses_tokens_must_wait_and_the_owner_need_not(client: Client) -> None:
    for _ in range(5):
        assert (await client.get("/v1/status", Authorization="Bearer no"))[0] == 401
    status, said = await client.get("/v1/status", Authorization="Bearer no")
    assert (status, said["code"]) == (429, "sign_in.too_many")
    assert (await client.get("/v1/status"))[0] == 200
    client.behind.clock.passed_s = 61
    assert (await client.get("/v1/status", Authorization="Bearer no"))[0] == 401


async def test_whoever_guesses_links_must_wait(client: Client) -> None:
    async def visit() -> int:
        async with client.session.get(client.url + "/sign-in/link/0") as response:
            return response.status

    assert [await visit() for _ in range(6)] == [410] * 5 + [429]


async def test_a_strangers_word_on_where_it_comes_from_counts_for_nothing(
    client: Client,
) -> None:
    """Header smuggling: each try claims another address, and all are counted as one."""
    for n in range(5):
        await client.get(
            "/v1/status",
            **{
                "Authorization": "Bearer no",
                "X-Forwarded-For": f"203.0.113.{n}",
                "Forwarded": f"for=203.0.113.{n}",
                "X-Real-IP": f"203.0.113.{n}",
            },
        )
    status, _ = await client.get(
        "/v1/status", **{"Authorization": "Bearer no", "X-Forwarded-For": "203.0.113.9"}
    )
    assert status == 429


async def test_a_named_proxys_word_counts_and_nothing_before_it(behind: Behind) -> None:
    behind.terms = Terms(proxies=frozenset({"127.0.0.1"}))
    async with serving(behind.parts()) as (session, url):
        client = Client(session=session, url=url, behind=behind)
        for _ in range(5):
            said = {"Authorization": "Bearer no", "X-Forwarded-For": "198.51.100.7, 203.0.113.1"}
            await client.get("/v1/status", **said)
        wrong = {"Authorization": "Bearer no"}
        assert (await client.get("/v1/status", **wrong, **{"X-Forwarded-For": "203.0.113.2"}))[
            0
        ] == 401
        assert (await client.get("/v1/status", **wrong, **{"X-Forwarded-For": "203.0.113.1"}))[
            0
        ] == 429
    await behind.store.close()


# ------------------------------------------------------------------ pages
async def test_who_is_not_signed_in_is_sent_to_where_one_signs_in(client: Client) -> None:
    async with client.session.get(client.url + "/sign-in") as response:
        assert response.status == 200
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert "upright login" in await response.text()


async def test_without_a_provider_there_is_no_way_to_it(client: Client) -> None:
    for path in ("/sign-in/start", "/sign-in/return"):
        async with client.session.get(client.url + path) as response:
            assert (response.status, (await response.json())["code"]) == (
                404,
                "sign_in.no_provider",
            )


async def test_the_owner_sees_every_account(client: Client, ann: Person) -> None:
    status, listed = await client.get("/v1/accounts", **AUTH)
    assert status == 200
    assert [(each["name"], each["role"]) for each in listed] == [("ann", "operator")]
