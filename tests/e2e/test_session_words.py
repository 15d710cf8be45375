"""A word to a busy worker, over the real processes: `session interrupt` and `session ask`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fixtures.pulls import Pull, open_pull
from fixtures.spine import Spine, raised

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(120),  # the first one sets everything up; each lets a whole story happen
]
SILENT_S = 40.0  # longer than a test may take to notice that nobody cut it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def spine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Spine]:
    async with raised(tmp_path_factory.mktemp("spine")) as made:
        yield made


async def thinking(spine: Spine, seed: int) -> tuple[Pull, str]:
    """Let a worker's model fall silent in the middle of its first answer; return the session."""
    fault = {"kind": "silence", "agent": "worker", "after_chunks": 1, "seconds": SILENT_S}
    await spine.model.post("/_scripted/faults", fault)
    pull = await open_pull(spine, seed)
    await pull.goes_red()
    work = await pull.opened()

    async def is_silent() -> bool:
        return bool((await spine.model.get("/_scripted/stats"))["faults_pending"] == 0)

    await spine.until(is_silent)
    return pull, str(work["session_id"])


async def stops(spine: Spine, session: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = await spine.hub.get("/v1/events/list?limit=500")
    return [one for one in events if one["session_id"] == session]


@pytest.mark.clause("B9.3", "B9.2")
async def test_an_interrupt_cuts_a_silent_model_short_and_the_work_goes_on(spine: Spine) -> None:
    pull, session = await thinking(spine, 31)
    said = await spine.upright("session", "interrupt", session, "Go on with the other file.")
    assert (said.code, said.err) == (0, "")
    assert "Interrupted" in said.out

    async def cut() -> dict[str, Any] | None:
        found = [one for one in await stops(spine, session) if one["stop"] == "llm.cut"]
        return found[0] if found else None

    async with asyncio.timeout(SILENT_S / 2):
        event = await spine.until(cut)
    assert event["data"]["seconds"] < SILENT_S / 2
    await pull.comes_green()
    entries = await spine.hub.get(f"/v1/sessions/{session}/entries?limit=500")
    assert sum("Go on with the other file." in one["message"]["text"] for one in entries) == 1


@pytest.mark.clause("B9.5")
async def test_a_question_is_answered_while_the_model_is_silent(spine: Spine) -> None:
    pull, session = await thinking(spine, 32)
    async with asyncio.timeout(SILENT_S / 2):
        said = await spine.upright("session", "ask", session, "How far are you?", "--json")
    assert said.code == 0, said.err
    told = said.json()
    assert told["answer"]
    assert told["ran_in_parallel"] is True
    assert "llm.cut" not in {one["stop"] for one in await stops(spine, session)}
    await spine.upright("session", "interrupt", session, "Thanks; go on.")
    await pull.comes_green()
