"""Trouble is said to a person on a page like any other, and to a machine as RFC 9457 (S4, S5)."""

from __future__ import annotations

from typing import Final

import pytest
from aiohttp import ClientResponse

from fixtures.team import Person, browser, give, link_of
from fixtures.web_hub import AUTH, Behind, Client, serving
from upright.engine.clock import SystemClock
from upright.web.fetch import Fetching
from upright.web.oidc import Client as OidcClient
from upright.web.oidc import Provider
from upright.web.pages import texts

BROWSER: Final = {"Accept": "text/html,application/xhtml+xml"}
TEXTS: Final = texts.load()
STRANGER: Final = {
    "/sign-in/link/none": (410, "sign_in.link_spent"),
    "/sign-in/return?code=c&state=s": (404, "sign_in.no_provider"),
    "/nowhere": (404, "http.not_found"),
    "/static/nothing.js": (404, "http.not_found"),
}


async def looked(client: Client, path: str, **headers: str) -> tuple[ClientResponse, str]:
    async with client.session.get(
        client.url + path, headers={**BROWSER, **headers}, allow_redirects=False
    ) as response:
        return response, await response.text()


def is_a_page(response: ClientResponse, html: str, code: str, language: str) -> bool:
    """Say whether this is a page of the workbench that names the trouble and a way on."""
    said = TEXTS[language].by_key
    wanted = [f'<html lang="{language}">', "upright.css", 'id="main"', f"<code>{code}</code>"]
    known = [said[key] for key in (f"trouble.{code}", f"trouble.{code}.do") if key in said]
    whole = html.replace("&#39;", "'")
    return all(text in whole for text in wanted + known) and (
        "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        and response.headers["X-Frame-Options"] == "DENY"
        and response.headers["Cache-Control"] == "no-store"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", STRANGER)
async def test_a_stranger_reads_what_happened_and_what_to_do_on_a_page(
    client: Client, path: str, language: str
) -> None:
    status, code = STRANGER[path]
    response, html = await looked(client, path, **{"Accept-Language": language})
    assert response.status == status
    assert is_a_page(response, html, code, language), html
    assert 'href="/sign-in"' in html


@pytest.mark.parametrize("path", STRANGER)
async def test_a_machine_gets_a_problem_at_the_same_places(client: Client, path: str) -> None:
    async with client.session.get(client.url + path, headers={"Accept": "*/*"}) as response:
        said = await response.json(content_type="application/problem+json")
    assert (response.status, said["code"]) == STRANGER[path]


async def test_who_is_in_reads_of_trouble_and_goes_on_from_there(client: Client) -> None:
    for path, code in (("/triggers/tr_none", "store.unknown_id"), ("/none", "http.not_found")):
        response, html = await looked(client, path, **AUTH)
        assert response.status == 404
        assert is_a_page(response, html, code, "en") is True
    client.behind.raises = ZeroDivisionError("planted")
    async with client.session.post(
        client.url + "/needs/rq_branch/deny", headers={**BROWSER, **AUTH}, data={}
    ) as response:
        html = await response.text()
    assert response.status == 500
    assert is_a_page(response, html, "internal", "en")
    assert "planted" not in html


async def test_a_form_of_an_older_sign_in_is_refused_on_a_page(client: Client) -> None:
    await give(client, "ann", "operator")
    ann = await browser(client, "ann")
    said = await _post(ann, {"csrf": "0" * 64})
    assert said[0].status == 403
    assert is_a_page(*said, "csrf.token", "en")
    said = await _post(ann, {"csrf": ann.headers["X-CSRF-Token"]}, Origin="https://evil.example")
    assert said[0].status == 403
    assert is_a_page(*said, "csrf.origin", "en")
    await client.post("/v1/accounts/ann/give", {"role": "viewer", "exec": "no"})
    said = await _post(ann, {"csrf": ann.headers["X-CSRF-Token"]})
    assert is_a_page(*said, "role.too_low", "en")
    await client.post("/v1/accounts/ann/revoke")
    said = await _post(ann, {"csrf": ann.headers["X-CSRF-Token"]})
    assert said[0].status == 401
    assert is_a_page(*said, "sign_in.ended", "en")
    assert client.behind.asked == []
    await ann.session.close()


async def _post(ann: Person, form: dict[str, str], **headers: str) -> tuple[ClientResponse, str]:
    where = f"{ann.url}/needs/rq_branch/deny"
    async with ann.session.post(where, data=form, headers={**BROWSER, **headers}) as response:
        return response, await response.text()


async def test_a_link_that_was_used_says_so_on_a_page(client: Client) -> None:
    path = await link_of(client, "local")
    assert (await looked(client, path))[0].status == 303
    response, html = await looked(client, path)
    assert response.status == 410
    assert is_a_page(response, html, "sign_in.link_spent", "en")


async def test_a_provider_that_is_silent_or_refuses_is_said_on_a_page(behind: Behind) -> None:
    said = OidcClient(
        issuer="http://127.0.0.1:9", client_id="u", secret=None, returns_to="http://127.0.0.1/r"
    )
    behind.provider = Provider(said, SystemClock(), Fetching(base="http://127.0.0.1:9"))
    async with serving(behind.parts()) as (session, url):
        client = Client(session=session, url=url, behind=behind)
        response, html = await looked(client, "/sign-in/start")
        assert response.status == 502
        assert is_a_page(response, html, "sign_in.provider", "en")
        response, html = await looked(client, "/sign-in/return?error=<script>&state=s")
        assert response.status == 400
        assert is_a_page(response, html, "sign_in.not_begun", "en")
        assert "<script>" not in html
    await behind.store.close()
