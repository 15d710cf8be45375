"""Links over a real store: one shape for all that has an id, and edges both ways (B7.5)."""

from __future__ import annotations

import pytest

from fixtures.agents import (
    DONE,
    TEST,
    WAIT_CI,
    worker,
)
from fixtures.recalling import SHORT, asks, read, shown, worked
from fixtures.still_hub import ANN, BOSS, StillHub, trigger
from upright.core.ids import kind_of
from upright.core.work import WorkState
from upright.store import graph
from upright.store.recall import READERS
from upright.store.tables import (
    JOB,
    OUTBOX,
    REQUEST,
    SESSION,
    TRIGGER,
    WAIT,
    WORK,
)


@pytest.mark.clause("B7.1", "B7.5")
async def test_everything_that_has_an_id_is_read_in_one_shape(hub: StillHub) -> None:
    await worked(hub)
    ids = [
        (await hub.rows(table))[0]["id"] for table in (TRIGGER, WORK, JOB, OUTBOX, REQUEST, WAIT)
    ]
    ids += [(await hub.rows(SESSION))[0]["id"], (await hub.rows(TRIGGER))[0]["thread_id"]]
    told = await asks(hub, *(read(one) for one in ids))
    for wanted, found in zip(ids, told, strict=True):
        assert list(found)[:4] == ["id", "kind", "trust", "summary"]
        assert (found["id"], found["kind"]) == (wanted, kind_of(wanted))
        assert found["summary"].count("\n") == 0
        assert "relatives" in found
        assert "text" in found


async def _edges(hub: StillHub, near: str) -> list[tuple[str, str]]:
    found = await hub.see(lambda c: graph.relatives(c, str(kind_of(near)), near))
    return [(edge.what, edge.id) for edge in found]


@pytest.mark.clause("B7.5")
async def test_every_edge_can_be_walked_back(hub: StillHub) -> None:
    _, item = await worked(hub)
    await hub.one(trigger("comment.created", by=ANN, thread="chat:9", related=("pr:7",)))
    todo, seen = [str(item.id)], set[str]()
    while todo:
        near = todo.pop()
        seen.add(near)
        for what, far in await _edges(hub, near):
            assert near in {one for _, one in await _edges(hub, far)}, f"{near} → {what} → {far}"
            todo += [far] if far not in seen and far not in todo else []
    assert {kind_of(one) for one in seen} == set(READERS) - {"memory"}


@pytest.mark.clause("B7.5", "B5.5")
async def test_three_reads_lead_from_another_channel_to_a_task_long_done(hub: StillHub) -> None:
    """Message → its thread → the linked one → the item, whose worker was compacted and ended."""
    agents, item = await worker(hub, TEST, WAIT_CI, limits=SHORT)
    for _ in range(3):
        await agents.go()
        hub.clock.go_on(60)
        await hub.one(trigger("comment.created", by=ANN))
    agents.chat.worker = (TEST, DONE)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED
    assert (await hub.row(SESSION, id=item.session))["generation"] > 1
    message = trigger("message.created", by=BOSS, thread="chat:1", related=("pr:7",))
    own = (await hub.row(TRIGGER, id=(await hub.one(message)).id))["thread_id"]  # its header
    reads = []
    for what in ("linked", "work", ""):
        reads.append(await shown(hub, own))
        own = next((edge.id for edge in reads[-1].relatives if edge.what == what), "")
    assert len(reads) == 3
    assert (reads[-1].id, reads[-1].facts["state"]) == (item.id, "completed")
    assert len(reads[-1].facts["evidence"]) == 1
