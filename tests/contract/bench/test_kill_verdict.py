"""The kill bench's verdict on a real database: each planted loss is found, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fixtures.databases import opened
from fixtures.store_rows import job, put, session, trigger, work
from upright.api import Context
from upright.cli.bench.load import FIRST_ID
from upright.cli.bench.story import WITNESS
from upright.cli.bench.verdict import KIND, SOURCE, Findings, look
from upright.core.job import JobState
from upright.core.work import WorkState
from upright.store import codec, trail
from upright.store.address import Address
from upright.store.storage import Storage
from upright.store.tables import DEDUPE, JOB, TRIGGER
from upright.store.unit import Connection

ONE: Final = FIRST_ID + 1
TWO: Final = FIRST_ID + 2


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Storage]:
    made = await opened(address)
    yield made
    await made.close()


def comment(c: Connection, name: str, number: int) -> None:
    """Store a comment of the load, as intake does."""
    put(c, trigger(name, kind=KIND, title="t", at_ms=1, disposition="held"))
    stored = c.execute(TRIGGER.select().where(TRIGGER.c.id == name)).one()
    value = codec.load_trigger(stored.body_json)
    facts = (("native_id", str(number)),)
    value = replace(value, context=Context(thread="pr:7", facts=facts))
    mine = TRIGGER.update().where(TRIGGER.c.id == name)
    c.execute(mine.values(body_json=codec.dump_trigger(value)))


def key(c: Connection, name: str, number: int) -> None:
    row = {"source": SOURCE, "key": f"comment:{number}:created:", "trigger_id": name}
    c.execute(DEDUPE.insert(), row)


async def looked(store: Storage, folder: Path, *ids: int) -> Findings:
    log = folder / "log"
    await asyncio.to_thread(log.write_text, "".join(f"{one}\n" for one in ids))
    findings = Findings()
    await look(store, log, findings)
    return findings


async def test_what_was_answered_and_is_there_is_fine(store: Storage, tmp_path: Path) -> None:
    def unit(c: Connection) -> None:
        comment(c, "tr_a", ONE)
        key(c, "tr_a", ONE)

    await store.write(unit)
    found = await looked(store, tmp_path, ONE)
    assert (found.acknowledged, found.lost, found.doubled, found.stuck) == (1, [], [], [])


async def test_what_was_answered_and_is_not_there_is_lost(store: Storage, tmp_path: Path) -> None:
    found = await looked(store, tmp_path, ONE, TWO)
    assert len(found.lost) == found.acknowledged == 2
    assert str(ONE) in found.lost[0]


async def test_a_comment_that_is_stored_twice_is_doubled(store: Storage, tmp_path: Path) -> None:
    def unit(c: Connection) -> None:
        comment(c, "tr_a", ONE)
        key(c, "tr_a", ONE)
        comment(c, "tr_b", ONE)

    await store.write(unit)
    found = await looked(store, tmp_path, ONE)
    assert (found.lost, len(found.doubled)) == ([], 1)


async def test_work_that_nothing_wakes_is_stuck(store: Storage, tmp_path: Path) -> None:
    def unit(c: Connection) -> None:
        put(c, session("se_a", work="wk_a"), work("wk_a", WorkState.RUNNABLE, trigger_id="tr_a"))

    await store.write(unit)
    found = await looked(store, tmp_path)
    assert len(found.stuck) == 1
    assert found.stuck[0].startswith("wk_a is runnable")


@pytest.mark.parametrize(
    "run",
    [
        ("exited", "yes", 1, ""),
        ("exited", "yes", 2, "doubled"),
        ("exited", "yes", 0, "lost"),
        ("lost", "yes", 0, ""),
        ("lost", "yes", 1, ""),
        ("lost", "unknown", 2, "doubled"),
        ("cancelled", "no", 0, ""),
        ("cancelled", "no", 1, "doubled"),
    ],
)
async def test_the_traces_of_test_runs_tell_a_second_start(
    store: Storage, tmp_path: Path, run: tuple[str, str, int, str]
) -> None:
    outcome, started, traces, wrong = run

    def unit(c: Connection) -> None:
        put(c, job("jb_a", "wk_a", call_id="c", state=JobState.FINISHED))
        spec = f'{{"argv":["python3","-m","unittest"],"cwd":"{tmp_path}"}}'
        c.execute(JOB.update().values(spec_json=spec, outcome=outcome, started=started))

    await store.write(unit)
    await asyncio.to_thread((tmp_path / WITNESS).write_text, "ran\n" * traces)
    found = await looked(store, tmp_path)
    assert (bool(found.doubled), bool(found.lost)) == (wrong == "doubled", wrong == "lost")


# ------------------------------------------------------------------ the trail
async def test_the_trail_tells_what_is_new_and_whether_a_turn_is_under_way(store: Storage) -> None:
    def unit(c: Connection) -> tuple[bool, bool]:
        put(c, session("se_a", work="wk_a"))
        before = trail.is_leased(c)
        leased = session("se_b", work="wk_b")
        put(c, leased.model_copy(update={"lease_until_ms": 5}))
        return before, trail.is_leased(c)

    assert await store.write(unit) == (False, True)
    assert await store.read(trail.last) == 0
    assert await store.read(lambda c: trail.since(c, 0)) == []
