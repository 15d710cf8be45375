"""What GitHub could not deliver while the hub was down: it comes late, and once (B2.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.spine import Spine, raised
from upright.cli.demo.stage import MEMBER

ISSUES = "/_sandbox/repos/acme/ledger/issues"
COUNT = 5


async def lists(spine: Spine) -> None:
    """Tell the hub whose comments to list, and let it list for the first time."""
    await spine.stop("hub")
    text = spine.config.read_text(encoding="utf-8")
    named = '[sources.github]\nrepositories = ["acme/ledger"]'
    spine.config.write_text(text.replace("[sources.github]", named), encoding="utf-8")
    await spine.start_hub()


async def titled(spine: Spine, title: str, *, many: int) -> list[dict[str, object]]:
    async def there() -> list[dict[str, object]] | None:
        rows = [row for row in await spine.inbox() if row["thread_title"] == title]
        return rows if len(rows) >= many else None

    return await spine.until(there)


@pytest.mark.clause("B2.3", "B2.2")
@pytest.mark.timeout(120)  # the spine is set up, and its hub started three times
@pytest.mark.case("GH/deliveries")
async def test_webhooks_that_were_sent_while_the_hub_was_down_arrive_late_and_once(
    tmp_path: Path,
) -> None:
    async with raised(tmp_path) as spine:

        async def listed() -> bool:
            log = spine.children.named("hub").log.read_text(encoding="utf-8")
            return "source.reconciled" in log

        await lists(spine)
        opened = await spine.github.post(ISSUES, {"title": "Missed", "author": MEMBER})
        thread = f"{ISSUES}/{opened['number']}/comments"
        await spine.github.post("/_sandbox/settle", {})
        await titled(spine, "Missed", many=1)
        await spine.until(listed)

        await spine.stop("hub")
        guids = list[str]()
        for n in range(COUNT):
            told = await spine.github.post(thread, {"body": f"Missed {n}", "author": MEMBER})
            guids += told["deliveries"]
        await spine.github.post("/_sandbox/settle", {})
        for guid in guids:
            assert (await spine.github.get(f"/_sandbox/deliveries/{guid}"))["status"] in {0, None}
        await spine.start_hub()
        await titled(spine, "Missed", many=1 + COUNT)

        # somebody lets GitHub deliver them after all: what was listed is refused by its id
        for guid in guids:
            await spine.github.post(f"/_sandbox/deliveries/{guid}/redeliver", {})
        await spine.github.post("/_sandbox/settle", {})
        rows = await titled(spine, "Missed", many=1 + COUNT)
        said = sorted(str(row["title"]) for row in rows)
        assert len(rows) == 1 + COUNT, said
        assert {row["kind"] for row in rows} == {"issue.opened", "comment.created"}
