"""The workbench in a real browser: by keyboard, on a phone, live, without JavaScript, attacked."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from sqlmodel import SQLModel

from fixtures.page_rows import EVIL, PAIRING
from fixtures.store_rows import effect, put, request, trigger
from fixtures.web_hub import Behind
from fixtures.workbench import PHONE, Workbench, chromium, elsewhere, faults, workbench
from upright.core.material import visible
from upright.core.outbox import OutboxState
from upright.core.request import RequestKind
from upright.store import tables, tables_world
from upright.store.database import Store

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(60)]
PATHS: Final = ("/", "/triggers/tr_red", "/triggers/tr_star", "/needs", "/devices")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def bench(browser: Browser, story_file: Path, tmp_path: Path) -> AsyncIterator[Workbench]:
    file = Path(shutil.copy(story_file, tmp_path / "s.db"))
    behind = Behind(store=Store.open(file), waiting=[PAIRING])
    held = effect("ob_held", "wk_fix", trigger_id="tr_red")
    asked = request("rq_send", "wk_fix")
    assert isinstance(held, tables_world.Outbox)
    assert isinstance(asked, tables_world.Request)
    held.state, held.text, held.settled_at_ms = OutboxState.HELD, "Merge it.\nNow.", None
    asked.kind, asked.outbox_id, asked.prompt = RequestKind.APPROVAL, "ob_held", "May I merge?"
    asked.cause_json = asked.taint_json = '["tr_red"]'
    asked.trust = 0
    await behind.store.write(lambda c: put(c, held, asked))
    async with workbench(behind, browser) as served:
        yield served


def decided(bench: Workbench) -> list[tuple[object, ...]]:
    """Return what was done, without what was only looked at."""
    looks = {"raw", "pairings"}
    return [asked for asked in bench.behind.asked if asked[0] not in looks]


async def insert(bench: Workbench, *rows: SQLModel) -> None:
    await bench.behind.store.write(lambda c: put(c, *rows))


async def happen(bench: Workbench, name: str, title: str) -> None:
    """Let a trigger come in, and its event."""
    row = trigger(name, kind="ci.failed", title=title, at_ms=500, disposition="started")
    event = tables_world.Event(at_ms=500, stop="intake.accepted", trigger_id=name)
    await bench.behind.store.write(lambda c: put(c, row, event))
    bench.behind.bell.ring()


# ------------------------------------------------------------------ by keyboard, on a phone
async def test_everything_is_reached_by_keyboard_alone(bench: Workbench) -> None:
    page = await bench.open("/")
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator("#to-tr_star")).to_be_focused()
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Green")
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.keyboard.press("n")
    await expect(page.locator("h1")).to_have_text("Needs you")
    await page.keyboard.press("g")
    await page.keyboard.press("i")
    await expect(page.locator("h1")).to_have_text("Inbox")
    await page.keyboard.press("/")
    await page.keyboard.type("star")
    await page.keyboard.press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(1)
    assert bench.said == []


async def test_a_question_is_answered_by_keyboard_alone(bench: Workbench) -> None:
    page = await bench.open("/needs")
    await page.locator("#to-rq_branch").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.type("main")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Needs you")
    assert decided(bench) == [("answer", "rq_branch", "main")]


@pytest.mark.parametrize("path", PATHS)
async def test_on_a_phone_nothing_stands_out_and_axe_finds_nothing_serious(
    bench: Workbench, path: str
) -> None:
    page = await bench.open(f"{path}?lang=zh", size=PHONE, dark=True)
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert await faults(page) == []
    assert await page.evaluate("document.documentElement.lang") == "zh"
    page = await bench.open(f"{path}?lang=en")
    assert await faults(page) == []
    assert bench.said == []


# ------------------------------------------------------------------ two clicks
async def test_two_clicks_answer_the_four_questions(bench: Workbench) -> None:
    page = await bench.open("/")
    await page.click("#to-tr_red")
    await expect(page.locator("#happened")).to_contain_text("It came in")
    await expect(page.locator("#why")).to_contain_text("because")
    await expect(page.locator("#why")).to_contain_text("a rule")
    await expect(page.locator("#now")).to_contain_text("make it green")
    await expect(page.locator("#now")).to_contain_text("waits for the outside")
    await page.click("#now summary")
    await expect(page.locator("#now .stop")).to_contain_text("cancelled for good")
    await page.click("#now .danger")
    await page.wait_for_url("**/triggers/tr_red")
    assert decided(bench) == [("cancel_work", "wk_fix")]
    await page.goto(bench.url)
    await page.click("#to-tr_star")
    await expect(page.locator("#why")).to_contain_text("because")
    await expect(page.locator("h1 + .facts")).to_contain_text("ignored")
    await expect(page.locator("#now")).to_contain_text("Nothing works on this")
    await expect(page.locator("#now")).to_contain_text("There is nothing to stop")


async def test_an_approval_shows_exactly_what_is_sent_and_is_of_that(bench: Workbench) -> None:
    page = await bench.open("/needs")
    card = page.locator("#rq_send")
    await expect(card.locator(".diff .add")).to_have_text(["+ Merge it.", "+ Now."])
    await expect(card).to_contain_text("Tainted by")
    await expect(card).to_contain_text("stranger")
    await card.locator("summary").click()
    await card.locator("textarea").fill("Merge it later.")
    await card.get_by_role("button", name="Approve as changed").click()
    await page.wait_for_url("**/needs")
    await card.get_by_role("button", name="Approve exactly this").click()
    await page.wait_for_url("**/needs")
    await page.locator("#rq_send").get_by_role("button", name="Deny").click()
    await page.wait_for_url("**/needs")
    assert decided(bench) == [
        ("edit", "rq_send", "Merge it later.", "d"),
        ("decide", "rq_send", True, "d"),
        ("decide", "rq_send", False),
    ]


async def test_a_device_is_paired_by_its_digits(bench: Workbench) -> None:
    page = await bench.open("/devices")
    await expect(page.locator(".digits")).to_have_text("123 456")
    await page.click("#pair-rq_pair")
    await page.wait_for_url("**/devices")
    assert ("pair", "BCDFGHJK", "h") in bench.behind.asked


# ------------------------------------------------------------------ live
async def test_what_happens_shows_and_focus_and_words_stay(bench: Workbench) -> None:
    page = await bench.open("/")
    await expect(page.locator("#live")).to_have_text("Live")
    await page.locator("#to-tr_star").focus()
    await happen(bench, "tr_live1", "Something new")
    await expect(page.locator("#tr_live1")).to_contain_text("Something new")
    await expect(page.locator("#to-tr_star")).to_be_focused()
    await page.goto(f"{bench.url}/needs")
    await expect(page.locator("#live")).to_have_text("Live")
    box = page.locator("#text-rq_branch")
    await box.fill("half a thou")
    new = request("rq_new", "wk_fix")
    assert isinstance(new, tables_world.Request)
    new.prompt = "Another one?"
    await bench.behind.store.write(lambda c: put(c, new))
    await happen(bench, "tr_live2", "More")
    await expect(page.locator("#rq_new")).to_contain_text("Another one?")
    await expect(box).to_be_focused()
    await page.keyboard.type("ght")
    await expect(box).to_have_value("half a thought")
    assert bench.said == []


async def test_a_lost_line_is_said_and_taken_up_again_without_a_gap(bench: Workbench) -> None:
    page = await bench.open("/")
    await expect(page.locator("#live")).to_have_text("Live")
    await bench.stop()
    await expect(page.locator("#live")).to_contain_text("Not connected")
    await expect(page.locator("#live")).to_contain_text("as of")
    await happen(bench, "tr_gap", "While nobody looked")
    await bench.serve()
    await expect(page.locator("#live")).to_have_text("Live", timeout=20_000)
    await expect(page.locator("#tr_gap")).to_contain_text("While nobody looked")


async def test_ten_thousand_triggers_are_painted_in_under_a_second(bench: Workbench) -> None:
    rows = [
        trigger(f"tr_many{n:05}", kind="k", title=f"No {n}", at_ms=n, disposition="ignored")
        for n in range(10_000)
    ]
    values = [row.model_dump(exclude_none=True) for row in rows]
    table = SQLModel.metadata.tables["trigger"]
    await bench.behind.store.write(lambda c: c.execute(table.insert(), values))
    paints = []
    for _ in range(3):
        page = await bench.open("/")
        await expect(page.locator("tbody tr")).to_have_count(50)
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        paints.append(float(await page.evaluate(paint)))
    assert min(paints) < 1000


# ------------------------------------------------------------------ without JavaScript
async def test_without_javascript_everything_can_be_read_and_done(bench: Workbench) -> None:
    page = await bench.open("/?text=Red", scripts=False)
    await page.click("#to-tr_red")
    await expect(page.locator("#happened")).to_contain_text("It came in")
    await page.click("#raw summary")
    await expect(page.locator("#raw pre")).to_be_visible()
    await page.click("#now summary")
    await page.click("#now .danger")
    await page.wait_for_url("**/triggers/tr_red")
    assert decided(bench) == [("cancel_work", "wk_fix")]


# ------------------------------------------------------------------ attacked
@pytest.mark.clause("B14.1")
async def test_nothing_that_an_outsider_wrote_runs(bench: Workbench) -> None:
    page = await bench.open("/")
    for n, evil in enumerate(EVIL):
        row = trigger(f"tr_evil{n}", kind="note", title=evil, at_ms=500, disposition="held")
        assert isinstance(row, tables.TriggerRow)
        body = json.loads(row.body_json)
        body["content"] |= {"title": evil, "text": evil}
        body["actor"]["name"] = evil
        row.body_json, row.reason = json.dumps(body), evil
        await insert(bench, row)
        await page.goto(f"{bench.url}/triggers/tr_evil{n}")
        await expect(page.locator("h1 bdi")).to_have_text(visible(evil))
        await expect(page.locator("#said .this pre")).to_have_text(visible(evil))
        assert await _ours(page)
    await page.goto(bench.url)
    assert await _ours(page)
    assert bench.said == []


async def _ours(page: Page) -> bool:
    """Say whether no element is there that an outsider could have put there."""
    strange = "main script, main img, main iframe, main svg, main style, main math, [onload], x"
    return await page.locator(strange).count() == 0


async def test_no_other_site_can_frame_a_page(bench: Workbench) -> None:
    page = await bench.open("/")
    async with elsewhere(f"<iframe src='{bench.url}/' width=500 height=500></iframe>") as where:
        await page.goto(where)
        frame = page.frames[1]
        assert await frame.locator("#main").count() == 0


async def test_no_other_origin_makes_a_browser_do_anything(bench: Workbench) -> None:
    page = await bench.open("/")
    form = f"<form method=post action='{bench.url}/needs/rq_branch/deny'><button>x</button></form>"
    fetch = (
        f"<script>fetch('{bench.url}/v1/requests/rq_branch/deny',"
        "{method:'POST',credentials:'include',mode:'no-cors'})</script>"
    )
    async with elsewhere(form + fetch) as where:
        await page.goto(where)
        async with page.expect_navigation() as navigated:
            await page.click("button")
        assert (await navigated.value).status == 403
    assert decided(bench) == []


@pytest.mark.case("CVE-2026-25253")
async def test_no_address_says_where_a_page_connects_or_brings_it_a_token(bench: Workbench) -> None:
    page = await bench.open("/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    given = "gatewayUrl=ws://evil.example&hub=https://evil.example&url=//evil.example&server=evil"
    for path in ("/", "/needs", "/devices", "/triggers/tr_red"):
        await page.goto(f"{bench.url}{path}?{given}#token=planted&gatewayUrl=ws://evil.example")
        await page.goto(f"{bench.url}/static/icon.svg")  # so that the next is no mere jump
    await page.goto(f"{bench.url}/?{given}#token=planted")
    await expect(page.locator("#live")).to_have_text("Live")
    own = bench.url.partition("://")[2]
    assert {urlsplit(url).netloc for url in asked} == {own}
    assert [url for url in asked if "planted" in url.partition("#")[0]] == []
    streams = [url for url in asked if "/v1/events" in url]
    assert streams
    assert [url for url in streams if "evil" in url or "token" in url] == []
    kept = await page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    assert kept == [0, 0, ""]


@pytest.mark.parametrize("next_", ["//evil.example/", "https://evil.example", "/\\evil.example"])
async def test_signing_in_leads_nowhere_else(bench: Workbench, next_: str) -> None:
    page = await bench.open("/")
    await page.goto(f"{bench.url}/sign-in?next={next_}")
    links = await page.locator("a").evaluate_all("all => all.map(one => one.href)")
    assert all(link.startswith(bench.url) for link in links)
