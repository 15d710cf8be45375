"""Backups and events against a live hub: online, restored elsewhere, refused where one runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fixtures.pulls import open_pull
from fixtures.spine import Spine, raised

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(60),  # the first one sets everything up, and lets a whole story happen
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spine]:
    async with raised(tmp_path_factory.mktemp("spine")) as spine:
        pull = await open_pull(spine, 22)
        await pull.goes_red()
        await pull.opened()
        yield spine


async def test_a_backup_of_a_running_hub_is_restored_elsewhere_and_tells_the_consequences(
    spine: Spine, tmp_path: Path
) -> None:
    file, home = tmp_path / "hub.tar", {"UPRIGHT_HOME": str(tmp_path / "new")}
    made = await spine.upright("db", "backup", str(file), "--json")
    assert made.code == 0, made.err
    rows = json.loads(made.out)["rows"]
    assert rows["work"] == 1
    assert rows["trigger"] >= 1
    restored = await spine.run(["upright", "db", "restore", str(file)], **home)
    assert (restored.code, restored.err) == (0, "")
    assert "hub.key" in restored.out
    checked = await spine.run(["upright", "db", "check"], **home)
    assert checked.code == 0, checked.err
    again = await spine.run(["upright", "db", "restore", str(file)], **home)
    assert (again.code, "--replace" in again.err) == (1, True)
    assert await asyncio.to_thread(lambda: list(tmp_path.glob(".*"))) == []


async def test_a_running_hub_is_not_restored_over(spine: Spine, tmp_path: Path) -> None:
    file = tmp_path / "hub.tar"
    await spine.upright("db", "backup", str(file))
    refused = await spine.upright("db", "restore", str(file), "--replace")
    assert (refused.code, "is in use by process" in refused.err) == (1, True)


async def test_a_backup_is_made_at_rest_too(spine: Spine, tmp_path: Path) -> None:
    file = tmp_path / "hub.tar"
    await spine.stop("hub")
    try:
        made = await spine.upright("db", "backup", str(file))
        assert (made.code, made.err) == (0, "")
        assert "1 work items" in made.out
    finally:
        await spine.start_hub()


async def test_events_are_listed_and_a_replay_says_that_nothing_would_change(
    spine: Spine,
) -> None:
    listed = await spine.upright("events", "tail", "--limit", "500", "--json")
    stops = [json.loads(line)["stop"] for line in listed.out.splitlines()]
    assert {"gate.judged", "intake.accepted", "work.opened"} <= set(stops)
    replayed = await spine.upright("events", "replay", "--since", "1d")
    assert (replayed.code, replayed.err) == (0, "Nothing would change.\n")
    assert "0 would change; nothing was changed." in replayed.out


async def test_a_replay_of_nothing_is_a_wrong_use(spine: Spine) -> None:
    assert (await spine.upright("events", "replay")).code == 2
    assert (await spine.upright("events", "replay", "--since", "soon")).code == 2
