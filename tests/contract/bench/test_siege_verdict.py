"""The siege's verdict on a real database: each planted fault is found, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from sqlmodel import SQLModel

from fixtures.databases import opened
from fixtures.store_rows import delivery, effect, entry, put, request, session, trigger, work
from upright.api import Context
from upright.cli.bench.siege import whole
from upright.cli.bench.siege.findings import Findings
from upright.cli.bench.siege.verdict import SOURCE, Logs, judge
from upright.core.outbox import OutboxState
from upright.core.request import RequestState
from upright.core.transcript import Message, Role, ToolCall
from upright.core.work import WorkState
from upright.store import audit, codec, outsider
from upright.store.address import Address
from upright.store.storage import Storage
from upright.store.tables import DEDUPE, OUTBOX, PAYLOAD, RELATION, SESSION, TRIGGER, WORK
from upright.store.unit import Connection

KEYS: Final = {"tr_a": "comment:1:created:", "tr_b": "comment:2:created:"}
SAID: Final = [["comment:1:created:", 3, True], ["comment:2:created:", 3, True]]

Plant = Callable[[Connection], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fresh database, open here as a hub has it, and a folder for logs."""

    store: Storage
    where: Address
    folder: Path


@pytest.fixture
async def case(address: Address, tmp_path: Path) -> AsyncIterator[Case]:
    store = await opened(address)
    yield Case(store=store, where=address, folder=tmp_path)
    await store.close()


# ------------------------------------------------------------------ a good end
def good(c: Connection) -> None:
    """Store two comments, the item of the first, its reply, and an answered question."""
    for native, name in enumerate(KEYS, start=1):
        comment(c, name, native)
    put(
        c,
        session("se_router"),
        session("se_a", work="wk_a"),
        work("wk_a", WorkState.COMPLETED, trigger_id="tr_a"),
        request("rq_a", "wk_a", RequestState.ANSWERED),
        effect("ob_a", "wk_a", trigger_id="tr_a"),
        delivery("se_router", "tr_a", taken_n=0),
        delivery("se_a", "tr_a", taken_n=0),
        delivery("se_a", "tr_b", taken_n=1),
        *(entry("se_a", n, "tn_a", Message(role=Role.USER, text="x")) for n in range(2)),
    )
    c.execute(SESSION.update().where(SESSION.c.id == "se_a").values(ended_at_ms=9))


def comment(c: Connection, name: str, native: int, *, disposition: str = "woke") -> None:
    """Store a comment with its payload and its key."""
    put(c, trigger(name, kind="comment.created", title="t", at_ms=1, disposition=disposition))
    stored = c.execute(TRIGGER.select().where(TRIGGER.c.id == name)).one()
    value = codec.load_trigger(stored.body_json)
    value = replace(value, context=Context(thread="pr:7", facts=(("native_id", str(native)),)))
    mine = TRIGGER.update().where(TRIGGER.c.id == name)
    c.execute(mine.values(body_json=codec.dump_trigger(value)))
    body = {"id": stored.payload_id, "media_type": "", "body": b"", "size": 0, "spilled": ""}
    c.execute(PAYLOAD.insert().values(**body, created_at_ms=1))
    if name in KEYS:
        row = {"source": SOURCE, "key": KEYS[name], "trigger_id": name}
        c.execute(DEDUPE.insert(), row)


def visible(key: str, number: int, *, part: str = "1/1") -> dict[str, Any]:
    """Make a comment of ours as the sandbox shows it."""
    return {"id": number, "body": f"Fixed.\n\n<!-- upright:{quote(key, safe='')} {part} -->"}


async def judged(
    case: Case,
    plant: Plant = lambda _c: None,
    *,
    said: list[list[Any]] = SAID,
    shown: tuple[dict[str, Any], ...] = (visible("ob_a", 99),),
) -> Findings:
    """Store a good end, spoil it, and judge."""

    def unit(c: Connection) -> None:
        good(c)
        plant(c)

    await case.store.write(unit)
    logs = Logs(clients=(case.folder / "client.log",), person=case.folder / "person.log")
    await asyncio.to_thread(write, logs.clients[0], said)
    await asyncio.to_thread(write, logs.person, [["rq_a"]])
    findings = Findings()
    await judge(case.where, logs, shown, findings)
    return findings


def write(path: Path, rows: list[list[Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


async def test_a_good_end_has_no_findings(case: Case) -> None:
    found = await judged(case)
    assert found.all() == []
    assert (found.acknowledged, found.items, found.effects, found.whole) == (2, 1, 1, 1)


# ------------------------------------------------------------------ what is planted
def forget(name: str) -> Plant:
    def plant(c: Connection) -> None:
        c.execute(DEDUPE.delete().where(DEDUPE.c.trigger_id == name))
        c.execute(TRIGGER.delete().where(TRIGGER.c.id == name))

    return plant


def second_copy(c: Connection) -> None:
    comment(c, "tr_c", 2, disposition="ignored")


def nobody_took(c: Connection) -> None:
    comment(c, "tr_c", 3)


def unheard_answer(c: Connection) -> None:
    put(c, request("rq_b", "wk_a"))


def reply_again(c: Connection) -> None:
    put(c, effect("ob_b", "wk_a").model_copy(update={"state": OutboxState.DEAD}))


def two_children(c: Connection) -> None:
    for name in ("wk_x", "wk_y"):
        c.execute(RELATION.insert().values(work_id=name, kind="child_of", other_id="wk_a"))


def result(n: int, call: str = "call_1") -> SQLModel:
    return entry("se_a", n, "tn_a", Message(role=Role.TOOL, text="{}", call_id=call))


def two_results(c: Connection) -> None:
    calls = (ToolCall(id="call_1", name="plan", arguments="{}"),)
    said = entry("se_a", 2, "tn_a", Message(role=Role.ASSISTANT, calls=calls))
    put(c, said, result(3), result(4))


def no_result(c: Connection) -> None:
    calls = (ToolCall(id="call_1", name="plan", arguments="{}"),)
    put(c, entry("se_a", 2, "tn_a", Message(role=Role.ASSISTANT, calls=calls)))


def two_routers(c: Connection) -> None:
    put(c, session("se_router_too"))


def no_end(c: Connection) -> None:
    c.execute(WORK.update().values(state=WorkState.RUNNABLE.value))


def gap(c: Connection) -> None:
    put(c, entry("se_a", 3, "tn_a", Message(role=Role.USER, text="x")))


def no_fate(c: Connection) -> None:
    c.execute(TRIGGER.update().where(TRIGGER.c.id == "tr_b").values(disposition=""))


def no_payload(c: Connection) -> None:
    c.execute(PAYLOAD.delete())


def of_effect(state: OutboxState) -> Plant:
    def plant(c: Connection) -> None:
        c.execute(OUTBOX.update().values(state=state.value, receipt_id=""))

    return plant


def report_first(c: Connection) -> None:
    """Let the hub say something that was read before what had come earlier."""
    comment(c, "tr_report", 4)
    c.execute(TRIGGER.update().where(TRIGGER.c.id == "tr_report").values(source="hub"))
    put(c, delivery("se_a", "tr_report", taken_n=0))


async def test_what_the_hub_says_has_no_place_in_the_order_of_a_thread(case: Case) -> None:
    assert (await judged(case, report_first)).all() == []


def later_first(c: Connection) -> None:
    comment(c, "tr_late", 4)
    put(c, delivery("se_a", "tr_late", taken_n=0))


@pytest.mark.parametrize(
    ("plant", "kind", "said"),
    [
        (forget("tr_b"), "lost", "comment:2:created: was answered, and is not there"),
        (nobody_took, "lost", "tr_c was to reach somebody"),
        (second_copy, "doubled", "comment.created 2 is stored 2 times"),
        (two_routers, "broken", "two of router"),
        (reply_again, "doubled", "se_a replied 2 times"),
        (two_children, "doubled", "wk_a has 2 children"),
        (two_results, "broken", "call_1 of se_a was called 1 times, and has 2 results"),
        (no_result, "broken", "call_1 of se_a was called 1 times, and has 0 results"),
        (no_end, "stuck", "wk_a is runnable"),
        (gap, "broken", "the transcript of se_a has a gap"),
        (no_fate, "broken", "tr_b has no disposition"),
        (no_payload, "broken", "payload names pl_a"),
        (of_effect(OutboxState.PENDING), "stuck", "ob_a is still pending"),
        (of_effect(OutboxState.DEAD), "broken", "ob_a is dead, and visible"),
        (later_first, "broken", "se_a took tr_late after a later one"),
    ],
)
async def test_a_planted_fault_is_found(case: Case, plant: Plant, kind: str, said: str) -> None:
    found = await judged(case, plant)
    sentences: list[str] = getattr(found, kind)
    assert [one for one in sentences if said in one], found


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ((), "lost"),
        ((visible("ob_a", 98),), "lost"),
        ((visible("ob_a", 99), visible("ob_a", 100)), "doubled"),
        ((visible("ob_a", 99), visible("ob_z", 100)), "doubled"),
        ((visible("ob_a", 99), {"id": 5, "body": "no marker"}), "doubled"),
    ],
)
async def test_what_is_visible_must_be_exactly_what_was_sent(
    case: Case, shown: tuple[dict[str, Any], ...], kind: str
) -> None:
    found = await judged(case, shown=shown)
    assert len(getattr(found, kind)) == len(found.all()) == 1


async def test_an_effect_that_is_listed_as_unknown_is_no_finding(case: Case) -> None:
    found = await judged(case, of_effect(OutboxState.UNKNOWN))
    assert (found.all(), found.unknown) == ([], 1)


async def test_an_answer_of_a_person_that_is_not_stored_is_lost(case: Case) -> None:
    def plant(c: Connection) -> None:
        put(c, request("rq_b", "wk_a"))

    await judged(case, plant)
    findings, logs = Findings(), Logs(clients=(), person=case.folder / "second.log")
    await asyncio.to_thread(write, logs.person, [["rq_a"], ["rq_b"]])
    await judge(case.where, logs, (visible("ob_a", 99),), findings)
    assert findings.lost == ["rq_b was answered, and that is not stored"]


async def test_what_one_client_said_later_may_not_be_stored_earlier(case: Case) -> None:
    found = await judged(case, said=SAID[::-1])
    assert found.broken == ["comment:1:created: is stored behind what was said after it"]


async def test_two_clients_and_two_threads_have_no_order_between_them(case: Case) -> None:
    later, earlier = SAID[::-1]
    found = await judged(case, said=[later, [earlier[0], 4, True]])
    assert found.all() == []


# ------------------------------------------------------------------ at rest, and from outside
async def test_what_still_moves_is_named(case: Case) -> None:
    def unit(c: Connection) -> list[str]:
        good(c)
        at_rest = audit.restless(c)
        c.execute(SESSION.update().where(SESSION.c.id == "se_router").values(ready_at_ms=5))
        c.execute(OUTBOX.update().values(state=OutboxState.SENDING.value))
        put(c, request("rq_b", "wk_a"))
        no_end(c)
        assert audit.is_sending(c)
        return at_rest

    assert await case.store.write(unit) == []
    assert await outsider.look(case.where, audit.restless) == [
        "se_router is in the queue",
        "wk_a has not come to rest",
        "ob_a is still to be sent",
        "rq_b waits for an answer",
    ]


async def test_a_database_is_looked_at_while_somebody_else_has_it_open(case: Case) -> None:
    await case.store.write(good)
    findings = Findings()
    await whole.check(case.where, case.folder / "scratch", findings)
    assert (findings.whole, findings.all()) == (1, [])


@pytest.mark.parametrize("times", [1, 2])
async def test_a_file_that_is_torn_is_not_whole(
    tmp_path: Path, empty_file: Path, times: int
) -> None:
    torn = tmp_path / "torn.db"
    content = await asyncio.to_thread(empty_file.read_bytes)
    for _ in range(times):  # the scratch copy of an earlier check is no part of the next one
        await asyncio.to_thread(torn.write_bytes, content[:4096] + b"\x55" * (len(content) - 4096))
        findings = Findings()
        await whole.check(torn, tmp_path / "scratch", findings)
        assert findings.broken


@pytest.mark.parametrize("make_address", ["postgres"], indirect=True)  # SQLite has no backends
async def test_cutting_off_ends_the_others_and_nobody_else(case: Case) -> None:
    assert not isinstance(case.where, Path)
    await case.store.read(lambda c: c.scalar(sa.text("SELECT 1")))
    assert await outsider.look(case.where, outsider.cut_off) > 0
    assert await case.store.read(lambda c: c.scalar(sa.text("SELECT 2"))) == 2
