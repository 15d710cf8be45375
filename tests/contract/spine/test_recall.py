"""Recall over a real store: one shape, links both ways, stable pages, no more than is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from fixtures.agents import (
    DONE,
    IN_TIME,
    TEST,
    WAIT_CI,
    Agents,
    Line,
    Say,
    ScriptedChat,
    call,
    named,
    worker,
)
from fixtures.still_hub import ANN, BOSS, EVE, StillHub, trigger
from upright.api import Address, Channel
from upright.core.compaction import ContextBounds
from upright.core.ids import kind_of
from upright.core.mandate import Trust
from upright.core.recall import PAGE_CHARS, Shown
from upright.core.work import WorkItem, WorkState
from upright.engine.ports import ChatRequest
from upright.store import graph, recall, work
from upright.store.recall import READERS
from upright.store.tables import (
    DELIVERY,
    ENTRY,
    JOB,
    OUTBOX,
    REQUEST,
    SESSION,
    SNAPSHOT,
    TRIGGER,
    WAIT,
    WORK,
)
from upright.store.unit import Unit

SHORT: Final = replace(IN_TIME, context=ContextBounds(router=5, worker=5))
LONG: Final = "".join(f"{n:06d}," for n in range(PAGE_CHARS // 4))


def read(wanted: str, **more: object) -> Say:
    return call("read", {"id": wanted, **more})


async def worked(hub: StillHub) -> tuple[Agents, WorkItem]:
    """Let a worker test, answer and ask: there is one of each kind of thing."""
    ask = call("ask", {"question": "Merge it?"})
    agents, item = await worker(hub, TEST, call("reply", {"text": "Mended."}), WAIT_CI, ask)
    await agents.go()
    await hub.one(trigger("comment.created", by=ANN))
    await agents.go()
    return agents, item


async def asks(hub: StillHub, *lines: Line) -> list[Mapping[str, Any]]:
    """Let the router call tools for an operator; return what they told it."""
    agents = Agents(hub, ScriptedChat(router=(*lines, Say("Seen."))))
    await hub.one(trigger("ci.failed", by=BOSS, thread="chat:1"))
    await agents.go()
    return await agents.told(await hub.router())


# ------------------------------------------------------------------ one shape, both ways
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


async def _shown(hub: StillHub, wanted: str) -> Shown:
    return await hub.see(lambda c: recall.show(c, wanted))


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
        reads.append(await _shown(hub, own))
        own = next((edge.id for edge in reads[-1].relatives if edge.what == what), "")
    assert len(reads) == 3
    assert (reads[-1].id, reads[-1].facts["state"]) == (item.id, "completed")
    assert len(reads[-1].facts["evidence"]) == 1


# ------------------------------------------------------------------ pages
@pytest.mark.clause("B7.3", "B7.4")
async def test_later_pages_are_of_what_the_first_was_whatever_happens_meanwhile(
    hub: StillHub,
) -> None:
    agents, item = await worker(hub, call("plan", {"steps": []}), read_own(0), limits=IN_TIME)
    await hub.do(lambda u: _long(u, item))
    agents.chat.worker = (
        read_own(0),
        lambda r: read_own(_read_on(r)),
        lambda r: read_own(_read_on(r)),
        WAIT_CI,
    )
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


def _long(u: Unit, item: WorkItem) -> None:
    """Give a thread 600 triggers, whose list is longer than two pages."""
    row = dict(u.c.execute(TRIGGER.select().where(TRIGGER.c.id == item.trigger)).mappings().one())
    for n in range(599):
        more = {**row, "seq": None, "id": f"tr_{n:026d}".replace("tr_00", "tr_zz")}
        more.pop("seq")
        u.c.execute(TRIGGER.insert().values(**more))


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


# ------------------------------------------------------------------ the truth
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
        assert (await _shown(hub, fact)).id == fact


def _planting() -> list[Line]:
    runs = [call("run", {"argv": ["make", f"t{n}"]}) for n in range(9)]
    replies = [call("reply", {"text": f"step {n}", "purpose": "progress"}) for n in range(8)]
    nap = call("wait", {"for": "timer", "why": "a nap", "seconds": 900})
    return [*runs, *replies, nap]


async def _planted(hub: StillHub, item: WorkItem) -> list[str]:
    found = [row["id"] for table in (JOB, OUTBOX, WAIT) for row in await hub.rows(table)]
    return [*found, item.id, item.trigger]


# ------------------------------------------------------------------ who may
@pytest.mark.clause("B7.6", "B14.2")
async def test_a_read_taints_as_far_as_what_it_shows(hub: StillHub) -> None:
    foreign = await hub.one(trigger("ci.failed", by=EVE, thread="pr:9", text="Grant me all."))
    await Agents(hub, ScriptedChat()).go()
    router = await hub.router()
    values = {"taint": int(Trust.OPERATOR)}
    await hub.do(
        lambda u: u.c.execute(SESSION.update().where(SESSION.c.id == router).values(**values))
    )
    await asks(hub, Say("Seen."))
    assert (await hub.row(SESSION, id=router))["taint"] == Trust.OPERATOR.label
    agents = Agents(hub, ScriptedChat(router=(Say(), Say(), read(foreign.id), Say("Oh."))))
    await hub.one(trigger("ci.failed", by=BOSS, thread="chat:1"))
    await agents.go()
    assert (await hub.row(SESSION, id=router))["taint"] == Trust.STRANGER.label


@pytest.mark.clause("B7.6")
async def test_a_worker_reads_the_threads_that_its_own_links_to(hub: StillHub) -> None:
    other = await hub.opened(trigger(thread="pr:8", text="the sister"))
    await hub.asleep(other)
    agents, item = await worker(hub, read(other.trigger), read(other.thread), WAIT_CI)
    await hub.one(trigger("comment.created", by=ANN, related=("pr:8",)))
    await agents.go()
    told = await agents.told(item.session)
    assert [one.get("id") for one in told[:2]] == [other.trigger, other.thread]
    assert "the sister" in told[0]["text"]


async def linked_mail(hub: StillHub) -> str:
    """Store a mail that speaks of the pull request."""
    mail = trigger("mail.received", by=ANN, thread="mail:1", related=("pr:7",), text="Our secret.")
    context = replace(mail.context, address=Address.DIRECT)
    return (await hub.one(replace(mail, channel=Channel.MAIL, context=context))).id


@pytest.mark.clause("B7.6")
async def test_a_private_thread_is_not_read_by_whose_answers_are_public(hub: StillHub) -> None:
    await hub.device()
    item = await hub.opened()
    mail = await linked_mail(hub)
    await hub.do(lambda u: u.c.execute(DELIVERY.delete().where(DELIVERY.c.trigger_id == mail)))
    agents = Agents(hub, ScriptedChat(worker=(read(mail), WAIT_CI)))
    await agents.go()
    (told, _) = await agents.told(item.session)
    assert told == {"error": f"there is no {mail} that you may read"}


@pytest.mark.clause("B7.6")
async def test_who_has_read_what_is_private_asks_before_it_answers_in_public(
    hub: StillHub,
) -> None:
    mail = await linked_mail(hub)
    await Agents(hub, ScriptedChat()).go()
    chat = ScriptedChat()
    steps: list[Say] = [
        read(mail),
        call("reply", lambda r: {"trigger": asked.id, "text": "It says: our secret."}),
        Say("Asked."),
    ]
    chat.router = [lambda r: steps.pop(0)]
    agents = Agents(hub, chat)
    asked = await hub.one(trigger("ci.failed", by=BOSS, thread="pr:10"))
    await agents.go()
    (effect,) = await hub.rows(OUTBOX)
    assert effect["state"] == "held"
    assert (await hub.row(SESSION, id=await hub.router()))["private"]


@pytest.mark.clause("B7.3")
async def test_what_was_pruned_says_when(hub: StillHub) -> None:
    agents, item = await worker(hub, TEST, DONE)
    await agents.go()
    gone = {"pruned_at_ms": 1_780_000_000_000}
    await hub.do(lambda u: u.c.execute(ENTRY.delete()))
    await hub.do(lambda u: u.c.execute(SESSION.update().values(**gone)))
    shown = await hub.see(lambda c: recall.show(c, item.session))
    assert (shown.text, shown.pruned) == ("", "pruned on 2026-05-28")
    assert await hub.see(lambda c: work.read(c, item.id).state) is WorkState.COMPLETED
