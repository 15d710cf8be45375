"""Odd requests: what no client of ours sends is refused, and breaks nothing (S5, B14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from fixtures.team import Person, browser, give, link_of, with_token
from fixtures.web_hub import TOKEN, Client
from upright.web.signin import own_path

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
async def ann(client: Client) -> AsyncIterator[Person]:
    await give(client, "ann", "operator")
    person = await browser(client, "ann")
    yield person
    await person.session.close()


async def raw(client: Client, path: str, *headers: bytes) -> int:
    """Send header lines as they are; return the status."""
    address = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    lines = [f"GET {path} HTTP/1.1".encode(), *headers, b"Connection: close", b"", b""]
    writer.write(b"\r\n".join(lines))
    try:
        status = await reader.readline()
        return int(status.split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "header",
    [b"Authorization: Bearer \xff\xfe", b"Cookie: upright=\xff", "Cookie: upright=\u00fc".encode()],
)
async def test_a_credential_that_is_no_text_is_nobodys(client: Client, header: bytes) -> None:
    assert await raw(client, "/v1/inbox", b"Host: localhost", header) == 401


@pytest.mark.parametrize("path", ["/sign-in?next=//%5B", "/sign-in?next=http://[", "/sign-in"])
async def test_an_address_that_is_none_leads_home(client: Client, path: str) -> None:
    assert await raw(client, path, b"Host: localhost") == 200


@pytest.mark.parametrize("door", ["/static/", "/v1/work/", "/v1/raw/", "/triggers/", "/v1/show/"])
@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "%2e%2e/app.py",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "..%5c..%5capp.py",
        "%252e%252e%252fapp.py",
        "live.js%00.css",
        "tr_red%00",
        "%c0%ae%c0%ae/app.py",
    ],
)
async def test_no_name_leads_out_of_where_it_is_looked_for(
    client: Client, door: str, name: str
) -> None:
    bearer = f"Authorization: Bearer {TOKEN}".encode()
    assert await raw(client, door + name, b"Host: localhost", bearer) in {400, 404}


def test_what_is_no_address_is_home() -> None:
    assert own_path("//[") == "/"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Origin: http://[", 403),
        (b"Origin: null", 403),
    ],
)
async def test_an_origin_that_is_none_is_another_site(
    client: Client, header: bytes, status: int
) -> None:
    path = await link_of(client, "local")
    assert await raw(client, path, b"Host: localhost", header) == status


@pytest.mark.parametrize("host", [b"127.0.0.1:99999", b"127.0.0.1:abc", b"localhost."])
async def test_a_host_with_a_wrong_port_is_answered(client: Client, host: bytes) -> None:
    path = await link_of(client, "local")
    assert await raw(client, path, b"Host: " + host) in {303, 421}


async def test_a_look_at_a_links_head_does_not_spend_it(client: Client) -> None:
    path = await link_of(client, "local")
    async with client.session.head(client.url + path) as looked:
        assert looked.status == 405
    async with client.session.get(client.url + path, allow_redirects=False) as came:
        assert came.status == 303


@pytest.mark.parametrize(
    ("media", "sent"),
    [
        ("multipart/form-data", (b"--x\r\n", 403)),
        ("multipart/form-data; boundary=x", (b"--x\r\nbroken", 403)),
        (FORM, (b"csrf=%ff&text=\xff\xfe", 400)),
        (f"{FORM}; charset=nowhere", (b"csrf=a", 403)),
        (FORM, (b"csrf=a&csrf=b", 400)),
        (FORM, (b"&".join(b"f%d=x" % n for n in range(60)), 400)),
    ],
)
async def test_a_form_that_is_none_is_refused(
    client: Client, ann: Person, media: str, sent: tuple[bytes, int]
) -> None:
    body, status = sent
    headers = {"Content-Type": media}
    path = f"{client.url}/needs/rq_ask/answer"
    async with ann.session.post(path, data=body, headers=headers) as said:
        assert said.status == status, await said.text()


async def test_a_page_token_that_is_no_text_is_wrong(client: Client, ann: Person) -> None:
    headers = {"X-CSRF-Token": "\u00fc\u00ff"}
    async with ann.session.post(f"{client.url}/v1/tokens", json={}, headers=headers) as said:
        assert said.status == 403


# ------------------------------------------------------------------ tokens
@pytest.mark.parametrize(
    "days", ["3651", "0000019999999999", "0003651", "000001" + 20 * "9", "0", "-1"]
)
async def test_a_token_has_an_end(ann: Person, days: str) -> None:
    status, said = await ann.post("/v1/tokens", {"name": "t", "scopes": "read", "days": days})
    assert (status, said["code"]) == (422, "body.fields")


async def test_a_token_for_reading_changes_nothing_of_its_owners_either(
    client: Client, ann: Person
) -> None:
    reader = await with_token(client, ann, "read")
    for path, body in (
        ("/v1/tokens", {"name": "t", "scopes": "read", "days": "300"}),
        ("/v1/tokens/tk_x/revoke", None),
        ("/v1/sign-ins/si_x/end", None),
        ("/v1/work/wk_fix/private", None),
    ):
        status, said = await reader.post(path, body)
        assert (status, said["code"]) == (403, "scope.read"), path


async def test_a_token_makes_none_that_outlives_it(client: Client, ann: Person) -> None:
    actor = await with_token(client, ann, "act")  # 30 days
    status, made = await actor.post("/v1/tokens", {"name": "t", "scopes": "act", "days": "300"})
    assert status == 200
    ends = {row["id"]: row["ends_at_ms"] for row in (await ann.get("/v1/tokens"))[1]}
    assert ends[made["id"]] == made["ends_at_ms"] == min(ends.values())


async def test_a_link_of_somebody_who_was_revoked_lets_nobody_in(
    client: Client, ann: Person
) -> None:
    path = await link_of(client, "ann")
    assert (await client.post("/v1/accounts/ann/revoke"))[0] == 200
    await give(client, "ann", "viewer")
    async with client.session.get(client.url + path, allow_redirects=False) as came:
        assert came.status == 410


async def test_wrong_tokens_of_others_keep_nobodys_browser_out(client: Client, ann: Person) -> None:
    wrong = {"Authorization": f"Bearer uprt_{40 * 'a'}"}
    for _ in range(40):
        async with client.session.get(f"{client.url}/v1/me", headers=wrong) as said:
            assert said.status in {401, 429}
    assert (await ann.get("/v1/me"))[0] == 200
