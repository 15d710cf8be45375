"""What is read is what the store says now, and what was planted is found again (B5.5)."""

from __future__ import annotations

import json

import pytest

from fixtures.agents import (
    WAIT_CI,
    Line,
    Say,
    call,
    worker,
)
from fixtures.recalling import SHORT, shown
from fixtures.still_hub import ANN, StillHub, trigger
from upright.core.work import WorkItem, WorkState
from upright.store import recall
from upright.store.tables import (
    JOB,
    OUTBOX,
    WAIT,
)


@pytest.mark.clause("B11.11", "B5.5")
async def test_a_state_is_the_stores_whatever_a_transcript_says(hub: StillHub) -> None:
    """A worker that says it is done while its job runs is shown as what it is."""
    agents, item = await worker(hub, call("run", {"argv": ["make"], "background": True}))
    agents.box.answer = lambda argv, stdin: None
    agents.chat.worker = (*agents.chat.worker, Say("All is done and completed."))
    await agents.go()
    shown = await hub.see(lambda c: recall.show(c, item.id))
    assert shown.facts["state"] == WorkState.WAITING_JOB
    (job,) = await hub.rows(JOB)
    assert shown.facts["running"] == [job["id"]]
    told = await hub.see(lambda c: recall.show(c, item.session))
    assert "All is done" in told.text
    assert told.facts["state"] == WorkState.WAITING_JOB
    assert (await hub.see(lambda c: recall.show(c, job["id"]))).facts["outcome"] == "still_running"


@pytest.mark.clause("B5.5", "B7.5")
async def test_after_a_compaction_twenty_planted_facts_are_all_there(hub: StillHub) -> None:
    agents, item = await worker(hub, *_planting(), limits=SHORT)
    await agents.go()
    planted = await _planted(hub, item)
    assert len(planted) == 20
    await hub.one(trigger("comment.created", by=ANN, text="And?"))
    agents.chat.worker = (WAIT_CI,)
    await agents.go()
    loaded = await agents.loaded(item.session)
    assert loaded.generation == 1
    card = loaded.messages[1].text
    opened = [row["id"] for row in await hub.rows(WAIT, state="open")]
    assert set(opened) <= {wait["id"] for wait in json.loads(card.split("\n")[1])["open_waits"]} | {
        row["id"] for row in await hub.rows(WAIT, kind="external")
    }
    earlier = await hub.see(lambda c: recall.show(c, item.session, "generation:0"))
    for fact in planted:
        assert fact in card or fact in earlier.text, fact
        assert (await shown(hub, fact)).id == fact


def _planting() -> list[Line]:
    runs = [call("run", {"argv": ["make", f"t{n}"]}) for n in range(9)]
    replies = [call("reply", {"text": f"step {n}", "purpose": "progress"}) for n in range(8)]
    nap = call("wait", {"for": "timer", "why": "a nap", "seconds": 900})
    return [*runs, *replies, nap]


async def _planted(hub: StillHub, item: WorkItem) -> list[str]:
    found = [row["id"] for table in (JOB, OUTBOX, WAIT) for row in await hub.rows(table)]
    return [*found, item.id, item.trigger]
