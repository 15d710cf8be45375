"""Watchman: the oracle in the running hub mends what is safe, and asks for the rest (B11.8)."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from fixtures.still_hub import ANN, StillHub, trigger
from upright.core.work import WorkItem
from upright.engine.watchman import Watchman
from upright.store import alarm, oversight, sessions
from upright.store.tables import EVENT, REQUEST, SESSION, WAIT
from upright.store.unit import Unit


def watchman(hub: StillHub) -> Watchman:
    return Watchman(hub.units, hub.wake, every_s=30.0)


async def forgotten(hub: StillHub) -> WorkItem:
    """Let an item sleep that nothing will wake."""
    item = await hub.opened()
    await hub.asleep(item)
    gone = WAIT.update().values(state="cancelled")
    await hub.do(lambda u: u.c.execute(gone).rowcount)
    return item


@pytest.mark.clause("B11.8")
async def test_a_session_that_was_left_out_of_the_queue_is_put_back_and_said(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await hub.one(trigger("comment", by=ANN))
    await hub.do(lambda u: sessions.park(u.c, item.session))
    await watchman(hub).look()
    assert (await hub.row(SESSION, id=item.session))["ready_at_ms"] is not None
    assert hub.hinted == [item.session]
    (event,) = await hub.rows(EVENT, stop="oracle.mended")
    assert event["session_id"] == item.session


@pytest.mark.clause("B11.8")
async def test_what_is_stalled_is_said_at_once_and_asked_the_second_time(hub: StillHub) -> None:
    item = await forgotten(hub)
    watch = watchman(hub)
    await watch.look()
    assert [one.id for one in watch.stalled] == [item.id]
    assert await hub.rows(REQUEST) == []
    (event,) = await hub.rows(EVENT, stop="oracle.stalled")
    assert event["work_id"] == item.id
    for _ in range(3):
        await watch.look()
    request = await hub.row(REQUEST)
    assert (request["work_id"], request["state"]) == (item.id, "asked")
    assert item.id in request["prompt"]
    await hub.do(lambda u: oversight.cancel(u, item.id, "ann"))
    await watch.look()
    assert watch.stalled == ()


@pytest.mark.clause("B11.8")
async def test_a_healthy_hub_is_looked_at_without_a_write(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    hub.commit.clear()
    await watchman(hub).look()
    assert not hub.commit.is_set()


@pytest.mark.clause("B11.8")
async def test_a_round_takes_as_many_looks_as_there_are_pages(
    hub: StillHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm, "PAGE", 2)
    items = []
    for n in range(5):
        item = await hub.opened(trigger(thread=f"pr:{n}"))
        await hub.asleep(item)
        items.append(item)
    await hub.do(lambda u: u.c.execute(WAIT.update().values(state="cancelled")).rowcount)
    watch = watchman(hub)
    await watch.look()
    assert len(watch.stalled) == 2
    await watch.look()
    await watch.look()
    assert {one.id for one in watch.stalled} == {item.id for item in items}

    def cancel_all(u: Unit) -> None:
        for item in items:
            oversight.cancel(u, item.id, "ann")

    await hub.do(cancel_all)


@pytest.mark.clause("B11.7")
async def test_a_clock_that_goes_back_leaves_nobody_in_the_queue_for_a_day(hub: StillHub) -> None:
    item = await hub.opened()
    hub.clock.at = hub.clock.at.replace(day=hub.clock.at.day + 1)
    await hub.do(lambda u: sessions.wake(u, item.session))
    await hub.do(lambda u: _late(u, item))
    hub.clock.at = hub.clock.at.replace(day=hub.clock.at.day - 1)
    assert await hub.claim() == []
    assert await hub.do(alarm.pull) == 1
    assert [one.session for one in await hub.claim()] == [item.session]


def _late(u: Unit, item: WorkItem) -> None:
    mine = SESSION.update().where(SESSION.c.id == item.session)
    u.c.execute(mine.values(ready_at_ms=u.now_ms))


@pytest.mark.clause("B11.8")
@pytest.mark.case("HO/3078")
async def test_a_look_reads_by_the_indexes_of_what_lives(hub: StillHub) -> None:
    """What has ended, and what sleeps with nothing to read, is not looked at."""

    def plan(c: sa.Connection) -> str:
        said = list[tuple[str, Any]]()

        def hear(_c: object, _cursor: object, statement: str, given: object, *_: object) -> None:
            said.append((statement, given))

        sa.event.listen(c, "before_cursor_execute", hear)
        alarm.peek(c, "")
        sa.event.remove(c, "before_cursor_execute", hear)
        return "\n".join(
            row[3]
            for statement, given in said
            for row in c.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
        )

    if await hub.see(lambda c: c.dialect.name) != "sqlite":
        return
    read = await hub.see(plan)
    assert "ix_work_live" in read
    assert "ix_delivery_inbox" in read
    assert "SCAN work\n" not in read
    assert "SCAN session" not in read
