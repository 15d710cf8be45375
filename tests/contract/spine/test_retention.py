"""Retention on a real database: what is old goes, what is needed stays, and every id is known."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.agents import DONE, TEST, Agents, ScriptedChat, call, named, worker
from fixtures.still_hub import PULL, StillHub, trigger
from upright.api import EffectClass, Receipt
from upright.core.outbox import OutboxState
from upright.core.retention import Keep
from upright.core.work import WorkItem, WorkState
from upright.engine.pruner import Pruner, PruneTimes
from upright.store import jobs, outbox, output, retention, views, views_events, views_work
from upright.store.events import About, record
from upright.store.ledger import Cost, charge
from upright.store.spill import Spill
from upright.store.tables import (
    DEDUPE,
    DELIVERY,
    ENTRY,
    EVENT,
    JOB,
    LEDGER,
    OUTBOX,
    OUTPUT,
    PAYLOAD,
    RELATION,
    SESSION,
    SPENT,
    WORK,
)
from upright.store.unit import Unit

DAY_S: Final = 86_400.0
LARGE: Final = b"x" * 5000


def pruner(hub: StillHub, keep: Keep | None = None, spill: Spill | None = None) -> Pruner:
    return Pruner(hub.units, keep or Keep(), spill, PruneTimes(pause_s=0.0))


async def after(hub: StillHub, days: float, keep: Keep | None = None) -> dict[str, int]:
    """Let days pass, and prune; return how many rows of each kind went."""
    hub.clock.go_on(days * DAY_S)
    done = await pruner(hub, keep).once()
    return {name: rows for name, rows in done.items() if rows and name != "pages"}


async def count(hub: StillHub, table: sa.Table) -> int:
    return len(await hub.see(lambda c: c.execute(sa.select(table)).all()))


async def finished(hub: StillHub) -> tuple[Agents, WorkItem]:
    """Let a worker run one command and complete its item."""
    agents, item = await worker(hub, TEST, DONE)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED
    return agents, item


# ------------------------------------------------------------------ payloads
@pytest.mark.clause("B7.3", "B2.2")
async def test_a_payload_goes_after_its_age_and_its_trigger_says_when(hub: StillHub) -> None:
    first = await hub.one(trigger("star", native="n-star"))
    assert await after(hub, 29) == {}
    assert await after(hub, 2) == {"payloads": 1}
    shown = await hub.see(lambda c: views.trigger(c, first.id))
    assert shown["payload"]["raw"] == "pruned on 2026-07-02"
    assert shown["payload"]["size"] == len(b'{"raw":true}')
    raw = await hub.see(lambda c: views.payload(c, shown["payload_id"]))
    assert (raw.body, raw.pruned) == (b"", "pruned on 2026-07-02")


@pytest.mark.clause("B2.2")
@pytest.mark.parametrize("days", [7, 1000])
@pytest.mark.case("OC/31541")
async def test_a_redelivery_is_refused_with_the_first_ones_id_when_all_else_is_pruned(
    hub: StillHub, days: int
) -> None:
    first = await hub.one(trigger("star", native="n-star"))
    await after(hub, days)
    await hub.reopen()
    again = await hub.one(trigger("star", native="n-star"))
    assert (again.duplicate, again.id) == (True, first.id)


async def test_dedupe_keys_are_forgotten_only_where_somebody_says_so(hub: StillHub) -> None:
    first = await hub.one(trigger("star", native="n-star"))
    assert await after(hub, 101, Keep(dedupe=100)) == {"payloads": 1, "dedupe keys": 1}
    again = await hub.one(trigger("star", native="n-star"))
    assert (again.duplicate, again.id == first.id) == (False, False)
    assert await count(hub, DEDUPE) == 1


@pytest.mark.clause("B7.3")
async def test_the_payload_of_unfinished_work_and_of_what_is_unread_stays(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    unread = await hub.one(trigger("ci.failed", thread="pr:9"))
    assert "payloads" not in await after(hub, 400)
    await hub.do(lambda u: _end(u, item))
    await hub.do(lambda u: _take(u, unread.id))
    assert (await after(hub, 0))["payloads"] == 2


def _end(u: Unit, item: WorkItem) -> None:
    u.c.execute(WORK.update().where(WORK.c.id == item.id).values(state="cancelled"))
    mine = SESSION.update().where(SESSION.c.id == item.session)
    u.c.execute(mine.values(ended_at_ms=u.now_ms, ready_at_ms=None))


def _take(u: Unit, trigger_id: str) -> None:
    u.c.execute(DELIVERY.update().where(DELIVERY.c.trigger_id == trigger_id).values(taken_n=9))
    u.c.execute(SESSION.update().values(ready_at_ms=None))


async def test_pruning_goes_on_behind_what_is_passed_over_in_small_commits(hub: StillHub) -> None:
    item = await hub.opened()
    await hub.asleep(item)
    await hub.accept(*(trigger("star", thread="repo:1") for _ in range(retention.ROWS + 3)))
    hub.clock.go_on(31 * DAY_S)
    first = await hub.do(lambda u: retention.payloads(u, u.now_ms, retention.START))
    assert first.rows == retention.ROWS - 1  # the item's own is passed over
    assert first.place is not None
    assert (await after(hub, 0))["payloads"] == 4


# ------------------------------------------------------------------ transcripts, output
@pytest.mark.clause("B7.3")
async def test_a_transcript_goes_with_its_age_and_its_session_says_when(hub: StillHub) -> None:
    _, item = await finished(hub)
    entries = await hub.rows(ENTRY, session_id=item.session)
    assert "entries" not in await after(hub, 89)
    assert (await after(hub, 2))["entries"] == len(entries)
    assert await hub.rows(ENTRY, session_id=item.session) == []
    shown = await hub.see(lambda c: views.session(c, item.session))
    assert (shown["transcript"], shown["entries"]) == ("pruned on 2026-08-31", 0)


async def test_the_transcript_that_a_successor_recalls_stays_till_that_is_finished(
    hub: StillHub,
) -> None:
    _, item = await finished(hub)
    next_one = await hub.opened(trigger(thread="pr:8"))
    await hub.do(lambda u: _follows(u, next_one.id, item.id))
    await hub.asleep(next_one)
    assert "entries" not in await after(hub, 400)
    await hub.do(lambda u: _end(u, next_one))
    assert (await after(hub, 0))["entries"] > 0


def _follows(u: Unit, work_id: str, other: str) -> None:
    row = {"work_id": work_id, "kind": "follows", "other_id": other}
    u.c.execute(RELATION.insert(), row)


@pytest.mark.clause("B7.3")
async def test_output_goes_with_its_age_and_whoever_reads_it_is_told(hub: StillHub) -> None:
    _, item = await finished(hub)
    (job,) = await hub.rows(JOB)
    assert (await after(hub, 31))["output"] == 1
    assert await hub.rows(OUTPUT) == []
    shown = await hub.see(lambda c: views_work.job(c, job["id"]))
    assert (shown["output"], shown["stdout_bytes"]) == ("pruned on 2026-07-02", 3)
    told = await hub.see(lambda c: output.result(c, jobs.read(c, job["id"])))
    assert told["output"] == "pruned on 2026-07-02"
    assert "stdout" not in told
    assert (await hub.item(item)).state is WorkState.COMPLETED


@pytest.mark.clause("B7.3")
async def test_the_tools_that_read_say_what_was_pruned_and_when(hub: StillHub) -> None:
    agents, _ = await worker(
        hub,
        TEST,
        call("read_output", lambda request: {"job": named("jb")(request)}),
        call("read", lambda request: {"id": named("jb")(request)}),
        call("read", lambda request: {"id": named("tr")(request)}),
        DONE,
    )
    agents.chat.meanwhile[1] = lambda: hub.do(_prune_all)
    await agents.go()
    (session,) = await hub.rows(SESSION, kind="worker")
    _, piece, job, given, *_ = await agents.told(session["id"])
    assert (piece["text"], piece["note"]) == ("", "pruned on 2026-06-01")
    assert (job["outcome"], job["output"]) == ("exited", "pruned on 2026-06-01")
    assert given["raw"] == "pruned on 2026-06-01"


def _prune_all(u: Unit) -> None:
    u.c.execute(OUTPUT.delete())
    u.c.execute(JOB.update().values(pruned_at_ms=u.now_ms))
    u.c.execute(PAYLOAD.update().values(body=b"", pruned_at_ms=u.now_ms))


async def test_the_jobs_of_unfinished_work_keep_their_output(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, call("wait", {"for": "thread", "why": "CI"}))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_EXTERNAL
    assert await after(hub, 1000, Keep(output_bytes=1, events=0, ledger=0)) == {}
    assert await count(hub, OUTPUT) == 1


@pytest.mark.case("HO/2984")
async def test_over_the_cap_the_oldest_output_goes_and_no_more_than_must(hub: StillHub) -> None:
    await hub.device()
    for number in range(4):
        item = await hub.opened(trigger(thread=f"pr:{number}"))
        agents = Agents(hub, ScriptedChat(worker=(TEST, DONE)))
        agents.box.answer = lambda argv, stdin: (0, b"x" * 1000)
        await agents.go()
        assert (await hub.item(item)).state is WorkState.COMPLETED
        hub.clock.go_on(60)
    assert await after(hub, 0, Keep(output_bytes=2500)) == {"output over the cap": 2}
    kept = [row["pruned_at_ms"] is None for row in await hub.rows(JOB)]
    assert kept == [False, False, True, True]
    assert await hub.see(retention.output_size) == 2000


# ------------------------------------------------------------------ events, texts, costs
@pytest.mark.case("HO/3078")
async def test_old_events_go_but_never_the_newest_so_that_no_number_comes_twice(
    hub: StillHub,
) -> None:
    await hub.one(trigger("star"))
    newest = await hub.see(views_events.last_seq)
    await after(hub, 181)
    assert await hub.see(views_events.last_seq) == newest
    assert await count(hub, EVENT) == 1
    await hub.reopen()
    await hub.do(lambda u: record(u, "again", About()))
    (event,) = await hub.see(lambda c: views_events.events_since(c, newest, limit=9))
    assert event["stop"] == "again"


async def test_the_text_of_an_old_effect_goes_and_its_receipt_stays(hub: StillHub) -> None:
    item = await hub.opened()
    draft = outbox.Draft(
        session=item.session,
        work=item.id,
        trigger=None,
        effect_class=EffectClass.REPLY,
        destination=PULL,
        text="It is green.",
        idempotency_key="k",
    )
    stored = await hub.do(lambda u: outbox.put(u, draft))
    await hub.do(lambda u: outbox.claim_due(u, 9))
    sent = await hub.see(lambda c: outbox.read(c, stored.id))
    await hub.do(lambda u: outbox.delivered(u, sent, Receipt(provider_id="77"), 0.1))
    await hub.asleep(item)
    assert "receipts" not in await after(hub, 399)
    assert (await after(hub, 2))["receipts"] == 1
    row = await hub.row(OUTBOX)
    assert (row["text"], row["receipt_id"], row["digest"]) == ("", "77", stored.digest)
    assert row["reason"] == "its text was pruned on 2027-07-07"


async def test_an_effect_that_is_not_settled_keeps_its_text_for_ever(hub: StillHub) -> None:
    item = await hub.opened()
    draft = outbox.Draft(
        session=item.session,
        work=item.id,
        trigger=None,
        effect_class=EffectClass.REPLY,
        destination=PULL,
        text="May I?",
        idempotency_key="k",
        state=OutboxState.HELD,
    )
    await hub.do(lambda u: outbox.put(u, draft))
    await hub.asleep(item)
    await after(hub, 2000)
    assert (await hub.row(OUTBOX))["text"] == "May I?"


async def test_the_ledger_is_kept_longest(hub: StillHub) -> None:
    await finished(hub)
    rows = await count(hub, LEDGER)
    await after(hub, 399)
    assert await count(hub, LEDGER) == rows
    assert await count(hub, SPENT) == 5
    await after(hub, 2)
    assert await count(hub, LEDGER) == 1
    assert await count(hub, SPENT) == 0


@pytest.mark.clause("B16.2")
async def test_what_an_unfinished_item_has_used_is_kept_however_long_it_waits(
    hub: StillHub,
) -> None:
    item = await hub.opened()
    await hub.do(lambda u: charge(u, Cost(kind="model", session_id=item.session)))
    await after(hub, 500)
    assert [row["name"] for row in await hub.rows(SPENT)] == [item.id]
    await hub.asleep(item)


async def test_what_is_kept_for_ever_is_never_pruned(hub: StillHub) -> None:
    await finished(hub)
    for_ever = Keep(
        raw=0, transcript=0, output=0, output_bytes=0, events=0, receipts=0, ledger=0, dedupe=0
    )
    assert await after(hub, 10_000, for_ever) == {}


@pytest.mark.clause("B11.6")
@pytest.mark.case("HO/3078")
async def test_pruning_everything_leaves_nothing_asleep_and_work_goes_on(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, call("wait", {"for": "thread", "why": "CI"}), DONE)
    await agents.go()
    await after(hub, 2)
    await hub.one(trigger("ci.passed"))
    await after(hub, 365)
    await agents.go()
    assert (await hub.item(item)).state is WorkState.COMPLETED


# ------------------------------------------------------------------ spilled payloads
async def held(spill: Spill) -> list[str]:
    return await asyncio.to_thread(lambda: list(spill.names()))


@pytest.mark.clause("B1.2")
async def test_a_large_payload_is_a_file_that_goes_after_its_row(
    hub: StillHub, tmp_path: Path
) -> None:
    spill = Spill(tmp_path / "spill")
    hub.policy = replace(hub.policy, spill_bytes=1000)
    named = await asyncio.to_thread(spill.keep, LARGE)
    first = await hub.one(replace(trigger("star"), raw=LARGE))
    second = await hub.one(replace(trigger("star"), raw=LARGE))
    payload = (await hub.see(lambda c: views.trigger(c, first.id)))["payload"]
    assert (payload["size"], payload["spilled"], payload["raw"]) == (5000, named, "in a file")
    assert (await hub.rows(PAYLOAD))[0]["body"] == ""
    hub.clock.go_on(20 * DAY_S)
    third = await hub.one(replace(trigger("star"), raw=LARGE))
    hub.clock.go_on(11 * DAY_S)
    await pruner(hub, spill=spill).once()
    assert await held(spill) == [named]  # the third one needs it
    hub.clock.go_on(20 * DAY_S)
    await pruner(hub, spill=spill).once()
    assert await held(spill) == []
    assert len({first.id, second.id, third.id}) == 3


# ------------------------------------------------------------------ the file
async def test_room_in_the_file_is_given_back(hub: StillHub) -> None:
    if not isinstance(hub.where, Path):
        return  # PostgreSQL's own vacuum does it
    for _ in range(20):
        await hub.one(replace(trigger("star"), raw=b"x" * 100_000))
    full = await hub.see(_pages)
    await after(hub, 31)
    assert await hub.see(_pages) < full / 2


def _pages(c: sa.Connection) -> int:
    return int(c.exec_driver_sql("PRAGMA page_count").scalar() or 0)
