"""A hub that works, looked at three ways: command line, API and pages say the same, live."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from fixtures.documented import Documented
from fixtures.pulls import Pull, open_pull
from fixtures.spine import Spine, raised
from fixtures.workbench import chromium

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(110)]
WITHIN_MS: Final = 30_000
ID: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Live:
    """Everything running, and a browser that is signed in by the link that the hub gives."""

    spine: Spine
    page: Page
    pull: Pull

    async def look(self, path: str) -> None:
        await self.page.goto(f"{self.spine.hub.base}{path}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Live]:
    async with chromium() as browser, raised(tmp_path_factory.mktemp("spine")) as spine:
        link = await spine.hub.post("/v1/accounts/local/link", {})
        page = await browser.new_page()
        page.set_default_timeout(WITHIN_MS)
        expect.set_options(timeout=WITHIN_MS)
        await page.goto(f"{spine.hub.base}{link['path']}")
        pull = await open_pull(spine, 31)
        yield Live(spine=spine, page=page, pull=pull)
        expect.set_options(timeout=5_000)


async def test_a_story_is_watched_live_over_a_dropped_line_and_told_alike_three_times(
    live: Live,
) -> None:
    await _watched(live)
    await _told_alike(live)
    await _as_documented(live)


# ------------------------------------------------------------------ watched
async def _watched(live: Live) -> None:
    """Let the story happen before the browser's eyes; the hub is killed in the middle of it."""
    spine, page = live.spine, live.page
    await live.look("/")
    await expect(page.locator("#live")).to_have_text("Live")
    await live.pull.goes_red()
    work = await live.pull.opened()
    opener = work["trigger_id"]
    await expect(page.locator(f"#{opener}")).to_contain_text("started")
    await page.click(f"#to-{opener}")
    await expect(page.locator("#now")).to_contain_text(work["goal"])
    await expect(page.locator("#live")).to_have_text("Live")
    await spine.stop("hub", signal.SIGKILL)
    await expect(page.locator("#live")).to_contain_text("Not connected")
    await spine.start_hub()
    await expect(page.locator("#live")).to_have_text("Live")
    await live.pull.comes_green()
    await expect(page.locator(f"#{work['id']} .work-completed")).to_be_visible()
    await expect(page.locator("#effects .outbox-sent").first).to_be_visible()
    await expect(page.locator("#now")).to_contain_text("there is nothing to stop")


# ------------------------------------------------------------------ told alike
async def _told_alike(live: Live) -> None:
    spine = live.spine
    api = await spine.hub.get("/v1/inbox?limit=50")
    cli = (await spine.upright("inbox", "--limit", "50", "--json")).json()
    assert cli[::-1] == api
    await live.look("/")
    shown = await live.page.locator("tbody tr").evaluate_all(
        "all => all.map(row => [row.id, row.querySelector('td.why').innerText.trim(),"
        " row.querySelector('.badge').className])"
    )
    assert shown == [
        [row["id"], row["reason"].strip(), f"badge disposition-{row['disposition']}"] for row in api
    ]
    (opener,) = [row for row in api if row["work_id"]]
    why = await spine.hub.get(f"/v1/why/{opener['id']}")
    assert (await spine.upright("why", opener["id"], "--json")).json() == why
    await live.look(f"/triggers/{opener['id']}")
    stops = await live.page.locator(".path code").all_inner_texts()
    assert stops == [event["stop"] for event in why["events"]]
    states = await live.page.locator("#effects .badge").evaluate_all(
        "all => all.map(a => a.className)"
    )
    work = await spine.hub.get(f"/v1/work/{opener['work_id']}")
    effects = {effect["id"]: effect for effect in [*why["outbox"], *work["outbox"]]}
    assert states == [f"badge outbox-{effect['state']}" for effect in effects.values()]
    assert "badge outbox-sent" in states
    await _devices_alike(live)


async def _devices_alike(live: Live) -> None:
    devices = await live.spine.hub.get("/v1/devices")
    assert (await live.spine.upright("device", "ls", "--json")).json() == devices
    await live.look("/devices")
    cards = live.page.locator("#paired article")
    assert await cards.evaluate_all("all => all.map(a => a.id)") == [one["id"] for one in devices]
    asked = await live.spine.hub.get("/v1/requests")
    assert (await live.spine.upright("requests", "ls", "--json")).json() == asked
    await live.look("/needs")
    waiting = await live.page.locator("article").evaluate_all("all => all.map(a => a.id)")
    assert waiting == [one["id"] for one in asked if one["can"]]


# ------------------------------------------------------------------ as documented
async def _as_documented(live: Live) -> None:
    """Hold what a hub that has worked answers against the document: every path that reads."""
    documented, ids = Documented(), await _ids(live.spine)
    read = 0
    for path, operations in documented.said["paths"].items():
        names = ID.findall(path)
        if "get" not in operations or names not in ([], ["id"]) or path.startswith(_ELSEWHERE):
            continue
        success = operations["get"]["responses"].get("200", {})
        if "application/json" not in success.get("content", {}):
            continue
        kind = path.split("/")[2] if names else ""
        for wanted in ids.get(kind, ()) if names else [""]:
            where = path.replace("{id}", wanted)
            documented.check("GET", where, 200, await live.spine.hub.get(where))
            read += 1
    assert read > 25


_ELSEWHERE: Final = ("/v1/raw/", "/v1/pairings/")


async def _ids(spine: Spine) -> Mapping[str, list[str]]:
    """Return ids of what has come of the story, by the paths that show them."""
    triggers = [row["id"] for row in await spine.hub.get("/v1/inbox?limit=5")]
    work: list[dict[str, Any]] = await spine.hub.get("/v1/work")
    items = [item["id"] for item in work]
    sessions = [item["session_id"] for item in work]
    return {
        "triggers": triggers,
        "why": [*triggers, *items],
        "show": [*triggers, *items, *sessions],
        "work": items,
        "sessions": sessions,
        "devices": [one["id"] for one in await spine.hub.get("/v1/devices")],
        "outbox": [one["id"] for one in await spine.hub.get("/v1/outbox")],
        "requests": [one["id"] for one in await spine.hub.get("/v1/requests?all=1")],
    }
