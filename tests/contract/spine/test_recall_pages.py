"""Pages over a real store: of one text, whatever happens meanwhile (B7.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fixtures.agents import (
    IN_TIME,
    TEST,
    WAIT_CI,
    Say,
    call,
    named,
    worker,
)
from fixtures.recalling import worked
from fixtures.still_hub import StillHub
from upright.core.work import WorkItem
from upright.engine.ports import ChatRequest
from upright.store import recall
from upright.store.tables import (
    DELIVERY,
    JOB,
    OUTBOX,
    SNAPSHOT,
    TRIGGER,
    WAIT,
    WORK,
)
from upright.store.unit import Unit


@pytest.mark.clause("B7.3", "B7.4")
async def test_later_pages_are_of_what_the_first_was_whatever_happens_meanwhile(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, call("plan", {"steps": []}), read_own(0), limits=IN_TIME)
    await hub.do(lambda u: _add(u, item, 0, 599))
    agents.chat.worker = (
        read_own(0),
        lambda r: read_own(_read_on(r)),
        lambda r: read_own(_read_on(r)),
        WAIT_CI,
    )
    agents.chat.meanwhile[1] = lambda: hub.do(lambda u: _add(u, item, 599, 700))
    await agents.go()
    told = [one for one in await agents.told(item.session) if "id" in one]
    assert all(one["id"] == item.thread for one in told)
    assert "".join(one["text"] for one in told).count("\n") + 1 == 600
    assert told[0]["total"] == sum(len(one["text"]) for one in told)
    assert "read_on_at" not in told[-1]
    assert len(await hub.rows(SNAPSHOT)) == 1


def read_own(offset: int) -> Say:
    return call("read", lambda r: {"id": named("th")(r), "offset": offset})


def _read_on(request: ChatRequest) -> int:
    at: int = json.loads(request.messages[-1].text)["read_on_at"]
    return at


def _add(u: Unit, item: WorkItem, first: int, end: int) -> None:
    """Give a thread more triggers, whose list is longer than two pages."""
    row = dict(u.c.execute(TRIGGER.select().where(TRIGGER.c.id == item.trigger)).mappings().one())
    del row["seq"]
    for n in range(first, end):
        u.c.execute(TRIGGER.insert().values(**{**row, "id": f"tr_zz{n:024d}"}))


@pytest.mark.clause("B7.4")
async def test_a_page_whose_snapshot_is_gone_is_refused_and_says_what_to_do(hub: StillHub) -> None:
    agents, item = await worker(hub, read_own(16_000), WAIT_CI)
    await agents.go()
    told = await agents.told(item.session)
    assert "begin at offset 0" in told[0]["error"]


@pytest.mark.clause("B7.4")
async def test_a_read_wakes_nobody_and_changes_nothing(hub: StillHub) -> None:
    await worked(hub)
    tables = (DELIVERY, OUTBOX, WAIT, WORK, JOB)
    before = [await hub.rows(table) for table in tables]
    await hub.see(lambda c: [recall.show(c, row["id"]) for row in _all(before)])
    assert [await hub.rows(table) for table in tables] == before


def _all(tables: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for rows in tables[1:] for row in rows]


@pytest.mark.clause("B7.3")
async def test_a_part_that_there_is_not_is_named_in_the_refusal(hub: StillHub) -> None:
    agents, item = await worker(hub, call("read", lambda r: {"id": named("tr")(r), "part": "x"}))
    await agents.go()
    assert (await agents.told(item.session))[0]["error"].endswith(" x")


@pytest.mark.clause("B7.3", "B1.2")
async def test_a_triggers_raw_bytes_and_a_jobs_output_are_parts(hub: StillHub) -> None:
    agents, item = await worker(
        hub,
        TEST,
        call("read", lambda r: {"id": named("tr")(r), "part": "raw"}),
        call("read", lambda r: {"id": named("jb")(r), "part": "stdout"}),
        WAIT_CI,
    )
    await agents.go()
    _, raw, printed, _ = await agents.told(item.session)
    assert raw["text"] == '{"raw":true}'
    assert (printed["text"], printed["part"]) == ("ok\n", "stdout")
