"""The pages: what outsiders wrote is only shown, every page is guarded, in two languages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from string import Formatter
from typing import Final

import pytest
from aiohttp import ClientResponse

from fixtures.page_rows import EVIL, PAIRING
from fixtures.store_rows import put, trigger
from fixtures.web_hub import AUTH, Client
from upright.api import ActorKind
from upright.core.budget import Measure, Scope
from upright.core.job import JobState
from upright.core.mandate import Trust
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind, RequestState
from upright.core.trigger import Disposition
from upright.core.wait import OnDeadline, WaitKind
from upright.core.work import WorkState
from upright.store import tables, tables_world
from upright.web.pages import texts
from upright.web.pages.layout import safe_link
from upright.web.pages.shelf import HERE

PAGES: Final = ("/", "/triggers/tr_red", "/needs", "/devices")


async def page(client: Client, path: str, **headers: str) -> tuple[ClientResponse, str]:
    given = {**AUTH, "Accept": "text/html", **headers}
    async with client.session.get(client.url + path, headers=given) as response:
        return response, await response.text()


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_forbids_what_is_not_its_own(client: Client, path: str) -> None:
    client.behind.waiting = [PAIRING]
    response, html = await page(client, path)
    assert response.status == 200
    policy = response.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'"):
        assert rule in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert response.headers["Cache-Control"] == "no-store"
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)
    assert not re.search(r"<[^>]+\s(?:on\w+|style)=", html)
    assert "https://" not in html.replace("https://example.org/99", "")  # nothing from elsewhere


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_says_nothing_to_who_has_not_signed_in(client: Client, path: str) -> None:
    async with client.session.get(client.url + path, allow_redirects=False) as response:
        assert response.status in {303, 401}
        assert "tr_red" not in await response.text()


@pytest.mark.clause("B14.1")
@pytest.mark.parametrize("evil", EVIL)
async def test_what_outsiders_wrote_is_shown_and_nothing_of_it_is_markup(
    client: Client, evil: str
) -> None:
    row = trigger("tr_evil", kind="note", title=evil, at_ms=500, disposition="held")
    assert isinstance(row, tables.TriggerRow)
    body = json.loads(row.body_json)
    body["content"] |= {"title": evil, "text": evil}
    body["actor"]["name"] = evil
    row.body_json, row.reason = json.dumps(body), evil
    asked = tables_world.Request(
        id="rq_evil",
        kind="question",
        state="asked",
        prompt=evil,
        created_at_ms=1,
        expires_at_ms=9**15,
    )
    await client.behind.store.write(lambda c: put(c, row, asked))
    for path in ("/", "/triggers/tr_evil", "/needs", "/?text=" + evil.replace("&", "%26")):
        _, html = await page(client, path)
        assert html.count("<script") == 2  # ours
        for tag in ("<img", "<svg", "<iframe", "<style", "<meta http-equiv", "<b>", "</textarea>x"):
            assert tag not in html
        assert "49" not in re.sub(r"\d{3,}", "", html) or "7*7" in html
        assert not re.search(r'href="\s*javascript:', html)
    _, html = await page(client, "/triggers/tr_evil")
    assert "&lt;" in html or "<" not in evil


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://example.org/1", "https://example.org/1"),
        ("javascript:alert(1)", ""),
        ("JavaScript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("//example.org", ""),
        ("http://[", ""),
        (None, ""),
    ],
)
def test_only_an_address_of_the_web_can_be_clicked(address: object, shown: str) -> None:
    assert safe_link(address) == shown


async def test_a_filter_that_can_not_be_meant_is_a_page_that_says_so(client: Client) -> None:
    response, html = await page(client, "/?disposition=odd")
    assert (response.status, response.content_type) == (400, "text/html")
    assert "query.disposition" in html
    response, html = await page(client, "/triggers/tr_nope")
    assert (response.status, "store.unknown_id" in html) == (404, True)
    response, _ = await page(client, "/nowhere")
    assert (response.status, response.content_type) == (404, "text/html")


async def test_the_inbox_shows_fifty_and_leads_on_by_number(client: Client) -> None:
    rows = [
        trigger(f"tr_{n:03}", kind="k", title=f"No {n}", at_ms=n, disposition="ignored")
        for n in range(120)
    ]
    await client.behind.store.write(lambda c: put(c, *rows))
    seen, path = list[str](), "/?disposition=ignored"
    while path:
        _, html = await page(client, path)
        seen += re.findall(r'<tr id="(\w+)"', html)
        older = re.search(r'href="([^"]+)" rel="next"', html)
        path = older[1].replace("&amp;", "&") if older else ""
    assert seen == [f"tr_{n:03}" for n in reversed(range(120))] + ["tr_star"]


async def test_who_is_not_signed_in_reads_how_in_their_language(client: Client) -> None:
    said = {"Accept": "text/html", "Accept-Language": "zh"}
    async with client.session.get(client.url + "/", headers=said) as response:
        assert response.url.path == "/sign-in"
        html = await response.text()
    assert "upright login" in html
    assert '<html lang="zh">' in html
    assert "/needs" not in html


# ------------------------------------------------------------------ what a person does
async def posted(client: Client, path: str, **fields: str) -> tuple[int, str]:
    async with client.session.post(
        client.url + path, data=fields, headers=AUTH, allow_redirects=False
    ) as response:
        return response.status, response.headers.get("Location", "")


async def test_what_a_person_decides_on_a_page_is_done_once_and_leads_back(client: Client) -> None:
    assert await posted(client, "/needs/rq_branch/answer", text="main\r\nnow") == (303, "/needs")
    assert await posted(client, "/needs/rq_branch/deny") == (303, "/needs")
    assert await posted(client, "/work/wk_fix/cancel") == (303, "/triggers/tr_red")
    assert await posted(client, "/triggers/tr_red/again") == (303, "/triggers/tr_red")
    assert await posted(client, "/devices/dv_box/revoke") == (303, "/devices")
    assert await posted(client, "/devices/pair/BCDF", bound_hash="h") == (303, "/devices")
    assert client.behind.asked == [
        ("answer", "rq_branch", "main\nnow"),
        ("decide", "rq_branch", False),
        ("cancel_work", "wk_fix"),
        ("again", "tr_red"),
        ("revoke", "dv_box"),
        ("pair", "BCDF", "h"),
    ]


async def test_a_form_that_brings_no_digest_back_names_none(client: Client) -> None:
    assert await posted(client, "/needs/rq_branch/approve") == (303, "/needs")
    assert client.behind.asked == [("decide", "rq_branch", True)]


async def test_an_approval_is_of_what_was_shown_and_of_nothing_else(client: Client) -> None:
    assert await posted(client, "/needs/rq_branch/approve", digest="d1") == (303, "/needs")
    assert await posted(client, "/needs/rq_branch/edit", digest="d1", text="x") == (303, "/needs")
    assert await posted(client, "/needs/rq_branch/again") == (303, "/needs")
    assert client.behind.asked == [
        ("decide", "rq_branch", True, "d1"),
        ("edit", "rq_branch", "x", "d1"),
        ("ask_again", "rq_branch"),
    ]


async def test_an_empty_answer_is_refused(client: Client) -> None:
    status, _ = await posted(client, "/needs/rq_branch/answer", text="  ")
    assert (status, client.behind.asked) == (422, [])


# ------------------------------------------------------------------ small files
async def test_a_small_file_is_sent_once(client: Client) -> None:
    response, _ = await page(client, "/static/live.js")
    assert (response.status, response.content_type) == (200, "text/javascript")
    again, body = await page(
        client, "/static/live.js", **{"If-None-Match": response.headers["ETag"]}
    )
    assert (again.status, body) == (304, "")


@pytest.mark.parametrize("name", ["..%2f..%2fapp.py", "nothing.js", "..%5capp.py"])
async def test_no_path_leads_out_of_the_folder_of_small_files(client: Client, name: str) -> None:
    response, _ = await page(client, f"/static/{name}")
    assert response.status == 404


# ------------------------------------------------------------------ languages
KINDS: Final[dict[str, type[StrEnum]]] = {
    "disposition": Disposition,
    "work": WorkState,
    "outbox": OutboxState,
    "job": JobState,
    "request": RequestKind,
    "asked": RequestState,
    "wait": WaitKind,
    "then": OnDeadline,
    "actor": ActorKind,
    "scope": Scope,
    "measure": Measure,
}


def used() -> Iterator[str]:
    """Yield the keys that templates name."""
    for path in (HERE / "templates").glob("*.html"):
        yield from re.findall(r"\bt\(['\"]([a-z_.]+)['\"]", path.read_text(encoding="utf-8"))


def test_every_text_is_there_in_each_language_with_the_same_values_in_it() -> None:
    loaded = texts.load()
    fields = {
        language: {
            key: {name for _, name, _, _ in Formatter().parse(text) if name}
            for key, text in said.by_key.items()
        }
        for language, said in loaded.items()
    }
    assert fields["en"] == fields["zh"]
    assert all(text.strip() for said in loaded.values() for text in said.by_key.values())


def test_every_text_that_is_shown_is_there_and_every_state_has_its_word() -> None:
    keys = set(texts.load()["en"].by_key)
    assert {key for key in used() if not key.endswith(".")} <= keys
    assert {f"nav.{name}" for name in ("inbox", "needs", "devices")} <= keys
    words = {f"{kind}.{each.value}" for kind, values in KINDS.items() for each in values}
    assert words | {f"trust.{each.label}" for each in Trust} <= keys


def test_chinese_is_chinese() -> None:
    loaded = texts.load()
    same = {key for key, text in loaded["zh"].by_key.items() if text == loaded["en"].by_key[key]}
    assert same == set()


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en;q=0.5, zh;q=0.9", "zh"),
        ("fr,de", "en"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=x", "en"),
        ("zh;q=99999999999", "en"),
    ],
)
async def test_the_language_is_the_browsers_choice(
    client: Client, asked: str, language: str
) -> None:
    _, html = await page(client, "/", **{"Accept-Language": asked})
    assert f'<html lang="{language}">' in html


async def test_a_language_that_was_asked_for_is_kept(client: Client) -> None:
    response, html = await page(client, "/?lang=zh")
    assert '<html lang="zh">' in html
    cookie = response.cookies["lang"]
    assert (cookie.value, cookie["samesite"], cookie["httponly"]) == ("zh", "Lax", True)
    _, html = await page(client, "/needs", Cookie="lang=zh")
    assert '<html lang="zh">' in html
    _, html = await page(client, "/?lang=xx")
    assert '<html lang="en">' in html
