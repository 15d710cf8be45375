"""PostgreSQL alone: races, lost connections, a server that goes away, its own time."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.databases import opened_by_the_databases_time
from fixtures.postgres import Server
from fixtures.still_hub import POLICY, SOURCE, CountedIds, StillClock, trigger
from upright.core.backoff import Backoff
from upright.engine.units import Units
from upright.store import intake, schema, sessions, views_events
from upright.store.address import Server as Place
from upright.store.address import server
from upright.store.errors import RevisionError, StoreInUseError, StoreUnavailableError
from upright.store.events import About, record
from upright.store.hold import Hold
from upright.store.pool import PoolLimits, open_engine
from upright.store.postgres import PostgresParts, PostgresStore, database_time
from upright.store.storage import Storage
from upright.store.tables import META, SESSION, TRIGGER
from upright.store.unit import Unit

KILL_OTHERS: Final = sa.text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
KILL_ME: Final = sa.text("SELECT pg_terminate_backend(pg_backend_pid())")
LOCKS: Final = sa.text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
RACE: Final = "DO $$ BEGIN RAISE EXCEPTION 'race' USING ERRCODE = '40001'; END $$"
QUICK: Final = PoolLimits(
    wait_s=5, connect_s=2, statement_s=2, again=Backoff(base_s=0.001, cap_s=0.05, max_tries=8)
)


@pytest.fixture
async def store(filled: Place) -> AsyncIterator[Storage]:
    made = await opened_by_the_databases_time(filled)
    yield made
    await made.close()


def units(store: Storage) -> Units:
    return Units(store, StillClock(), CountedIds(), committed=lambda: None)


def put(c: sa.Connection, key: str = "hub", value: str = "hb_1") -> int:
    return c.execute(META.insert().values(key=key, value=value)).rowcount


def values(c: sa.Connection) -> list[str]:
    return list(c.scalars(sa.select(META.c.value).order_by(META.c.key)))


# ------------------------------------------------------------------ races
async def test_one_delivery_that_comes_twice_at_once_becomes_one_trigger(store: Storage) -> None:
    given = trigger(native="same")
    made = units(store)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(made.write(lambda u: intake.accept(u, SOURCE, [given], POLICY)))
            for _ in range(8)
        ]
    accepted = [task.result()[0] for task in tasks]
    assert Counter(one.duplicate for one in accepted) == {False: 1, True: 7}
    assert len({one.id for one in accepted}) == 1
    assert (
        await store.read(lambda c: c.scalar(sa.select(sa.func.count()).select_from(TRIGGER))) == 1
    )


async def test_a_unit_that_lost_a_race_runs_again_and_sees_what_the_other_wrote(
    filled: Place,
) -> None:
    """Two read the same and then write: in one order or the other, never from the same snapshot."""
    store = await PostgresStore.open(filled, roll=lambda: 0.5)
    runs = Counter[str]()

    def see_and_note(name: str) -> Callable[[sa.Connection], None]:
        def unit(c: sa.Connection) -> None:
            runs[name] += 1
            seen = len(values(c))
            put(c, name, str(seen))

        return unit

    names = [f"n{n}" for n in range(12)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(store.write(see_and_note(name)))
    assert sorted(map(int, await store.read(values))) == list(range(12))
    assert runs.total() > len(names)
    await store.close()


async def test_a_unit_that_loses_every_race_is_refused_at_last(filled: Place) -> None:
    store = await PostgresStore.open(filled, roll=lambda: 0.5, limits=QUICK)
    runs = Counter[str]()

    def unlucky(c: sa.Connection) -> None:
        runs["unlucky"] += 1
        c.execute(sa.text(RACE))

    with pytest.raises(StoreUnavailableError, match="race"):
        await store.write(unlucky)
    assert runs["unlucky"] == QUICK.races + QUICK.again.max_tries
    await store.close()


async def test_two_claims_at_once_lease_each_session_once(store: Storage) -> None:
    made = units(store)

    def ready(u: Unit) -> None:
        for n in range(40):
            row = {"id": f"se_{n}", "kind": "worker", "agent": "worker", "taint": 0}
            row |= {"ready_at_ms": 1, "created_at_ms": 1, "generation": 0, "lease_epoch": 0}
            u.c.execute(SESSION.insert().values(**row, failures=0, nudges=0, steps=0))

    await made.write(ready)

    def claim(u: Unit) -> list[sessions.Claim]:
        return sessions.claim(u.c, u.now_ms, u.now_ms + 60_000, 5)

    async with asyncio.TaskGroup() as group:
        claimed = [group.create_task(made.write(claim)) for _ in range(10)]
    leased = Counter(one.session for task in claimed for one in task.result())
    assert leased == {f"se_{n}": 1 for n in range(40)}


async def test_a_claim_passes_by_what_another_transaction_is_claiming(store: Storage) -> None:
    def plan(c: sa.Connection) -> str:
        seen = list[str]()

        @sa.event.listens_for(c, "before_cursor_execute")
        def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
            seen.append(statement)

        sessions.claim(c, 1, 2, 1)
        return seen[0]

    assert "FOR UPDATE SKIP LOCKED" in await store.write(plan)


async def test_the_claims_plan_holds_with_many_ready_sessions(store: Storage) -> None:
    """A plan that was made on an empty table reads all of it: ours is made anew each time."""
    made = units(store)
    claim = sa.text(
        "EXPLAIN SELECT id FROM session WHERE ready_at_ms <= 5 AND (lease_until_ms IS NULL OR"
        " lease_until_ms <= 5) ORDER BY ready_at_ms LIMIT 16 FOR UPDATE SKIP LOCKED"
    )
    many = sa.text(
        "INSERT INTO session (id, kind, agent, generation, taint, ready_at_ms, lease_epoch,"
        " failures, nudges, steps, prompt_tokens, home_seq, created_at_ms)"
        " SELECT 'se_' || n, 'worker', 'worker', 0, 0, n, 0, 0, 0, 0, 0, 0, 1"
        " FROM generate_series(1, 6000) n"
    )
    for _ in range(8):
        await made.write(lambda u: sessions.claim(u.c, 5, 9, 16))
    await made.write(lambda u: u.c.execute(many).rowcount)
    await made.write(lambda u: u.c.execute(sa.text("ANALYZE session")).rowcount)
    plan = "\n".join(await made.write(lambda u: list(u.c.scalars(claim))))
    assert "ix_session_ready" in plan
    assert await store.read(lambda c: c.scalar(sa.text("SHOW plan_cache_mode"))) == (
        "force_custom_plan"
    )


# ------------------------------------------------------------------ events
async def test_an_event_shows_only_when_no_lower_number_can_come_any_more(store: Storage) -> None:
    """Numbers are given out before the commit: a reader that saw 2 first would never see 1."""
    made = units(store)
    began, go_on = asyncio.Event(), asyncio.Event()
    slow = asyncio.get_running_loop()

    def held(u: Unit) -> None:
        record(u, "held", About())
        _let_others_run(slow, began, go_on)

    async with asyncio.TaskGroup() as group:
        group.create_task(made.write(held))
        await began.wait()
        await made.write(lambda u: record(u, "quick", About()))
        assert await store.read(lambda c: views_events.events_since(c, 0, limit=9)) == []
        assert await store.read(views_events.last_seq) == 0
        go_on.set()
    shown = await store.read(lambda c: views_events.events_since(c, 0, limit=9))
    assert [event["stop"] for event in shown] == ["held", "quick"]


def _let_others_run(
    loop: asyncio.AbstractEventLoop, began: asyncio.Event, go_on: asyncio.Event
) -> None:
    """Wait inside a unit, without holding the loop up."""
    assert loop.is_running()
    began.set()
    sa.util.await_only(go_on.wait())


# ------------------------------------------------------------------ faults
async def test_a_backend_that_is_ended_in_the_middle_of_a_unit_costs_a_second_run(
    store: Storage,
) -> None:
    runs = Counter[str]()

    def unit(c: sa.Connection) -> None:
        runs["unit"] += 1
        put(c)
        if runs["unit"] == 1:
            c.execute(KILL_ME)

    await store.write(unit)
    assert (runs["unit"], await store.read(values)) == (2, ["hb_1"])


@pytest.mark.case("DB/716")
async def test_when_every_connection_is_ended_the_lock_is_taken_again(
    store: Storage, filled: Place
) -> None:
    await store.write(put)
    await store.write(lambda c: c.scalar(KILL_OTHERS))
    await store.write(lambda c: put(c, "later", "too"))
    assert await store.read(values) == ["hb_1", "too"]
    async with asyncio.timeout(10):
        while not await store.write(lambda c: c.scalar(LOCKS)):
            pass  # the news that its connection has ended is still on the way
    with pytest.raises(StoreInUseError, match=f"in use by process {os.getpid()} on "):
        await opened_by_the_databases_time(filled)


@pytest.mark.parametrize("was_stored", [True, False])
async def test_a_commit_whose_answer_is_lost_is_asked_for(
    filled: Place, *, was_stored: bool
) -> None:
    engine = await asyncio.to_thread(open_engine, filled, QUICK)
    hold = await asyncio.to_thread(Hold, filled, QUICK)
    parts = PostgresParts(
        engine=engine, hold=hold, limits=QUICK, roll=lambda: 0.5, time=database_time
    )
    store = PostgresStore(parts)
    runs = Counter[str]()

    @sa.event.listens_for(engine.sync_engine, "commit")
    def lose_the_answer(c: sa.Connection) -> None:
        runs["commits"] += 1
        if runs["commits"] > 1:
            return
        driver = c.connection.dbapi_connection
        if was_stored and driver is not None:
            driver.commit()
        raise ConnectionResetError

    def unit(c: sa.Connection) -> str:
        runs["unit"] += 1
        put(c)
        return "done"

    assert await store.write(unit) == "done"
    assert runs["unit"] == (1 if was_stored else 2)
    assert await store.read(values) == ["hb_1"]
    await store.close()


@pytest.mark.may_block  # a server is stopped and started meanwhile
async def test_a_server_that_goes_away_is_said_and_is_used_again_when_it_is_back(
    lone_server: Server,
) -> None:
    where = server(lone_server.url("filled"))
    store = await PostgresStore.open(where, roll=lambda: 0.5, limits=QUICK)
    await store.write(put)
    await asyncio.to_thread(lone_server.stop)
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            await store.write(lambda c: put(c, "lost"))
        with pytest.raises(StoreUnavailableError):
            await store.read(values)
    await asyncio.to_thread(lone_server.start)
    await store.write(lambda c: put(c, "later", "too"))
    assert await store.read(values) == ["hb_1", "too"]
    await store.close()


@pytest.mark.may_block  # a server is stopped and started meanwhile
async def test_a_short_absence_is_waited_for(lone_server: Server) -> None:
    patient = PoolLimits(again=Backoff(base_s=0.2, cap_s=0.5, max_tries=40))
    where = server(lone_server.url("filled"))
    store = await PostgresStore.open(where, roll=lambda: 0.9, limits=patient)
    await asyncio.to_thread(lone_server.stop)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(store.write(put))
        await asyncio.to_thread(lone_server.start)
    assert waiting.result() == 1
    await store.close()


@pytest.mark.case("PR/1596")
async def test_a_statement_that_takes_too_long_is_ended(filled: Place) -> None:
    limits = PoolLimits(statement_s=0.05, again=Backoff(base_s=0.001, max_tries=2))
    store = await PostgresStore.open(filled, roll=lambda: 0.5, limits=limits)
    with pytest.raises(StoreUnavailableError, match="statement timeout"):
        await store.write(lambda c: c.execute(sa.text("SELECT pg_sleep(9)")).rowcount)
    await store.close()


async def test_a_caller_that_finds_no_connection_free_is_refused_in_time(filled: Place) -> None:
    store = await PostgresStore.open(
        filled, roll=lambda: 0.5, limits=PoolLimits(writers=1, wait_s=0.05)
    )
    go_on = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(store.write(lambda _: bool(sa.util.await_only(go_on.wait()))))
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailableError, match="busy"):
            await store.write(put)
        go_on.set()
    await store.close()


@pytest.mark.case("SA/12099")
async def test_cancelled_callers_leak_no_connection_and_no_transaction(store: Storage) -> None:
    """Each caller is cancelled a little later than the one before: at every await there is."""

    async def cancelled_after(turns: int) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(store.write(lambda c: put(c, f"k{turns}")))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()

    for turns in range(60):
        await cancelled_after(turns)
    await store.write(put)
    idle = sa.text(
        "SELECT count(*) FILTER (WHERE state LIKE 'idle in transaction%'), count(*)"
        " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    stuck, others = await store.read(lambda c: tuple(c.execute(idle).one()))
    limits = PoolLimits()
    assert stuck == 0
    assert others <= limits.writers + limits.readers + 1


# ------------------------------------------------------------------ values
async def test_units_go_by_the_servers_time_whatever_the_hubs_clock_says(store: Storage) -> None:
    clock = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    before, seen, after = [
        await store.write(lambda c: int(c.scalar(clock) or 0)),
        await units(store).write(lambda u: u.now_ms),
        await store.write(lambda c: int(c.scalar(clock) or 0)),
    ]
    assert before <= seen <= after
    assert abs(seen - int(StillClock().now().timestamp() * 1000)) > 1000


@pytest.fixture
def in_kathmandu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")


@pytest.mark.case("ADK/5761")
async def test_times_are_the_same_in_kathmandu(in_kathmandu: None, store: Storage) -> None:
    made = units(store)
    away = sa.text("SET TIME ZONE 'Asia/Kathmandu'")
    there = await made.write(lambda u: (u.c.execute(away), u.now_ms)[1])
    here = await made.write(lambda u: u.now_ms)
    assert 0 <= here - there < 10_000


async def test_text_with_nul_is_kept_readable_and_found_again(store: Storage) -> None:
    await store.write(lambda c: put(c, "a\0b", "c\0d"))
    found = await store.read(
        lambda c: c.scalar(sa.select(META.c.value).where(META.c.key == "a\0b"))
    )
    assert found == "c\ufffdd"


# ------------------------------------------------------------------ the schema
@pytest.mark.may_block  # a migration reads its files on a loop of its own
def test_an_empty_database_is_filled_and_is_then_what_this_program_needs(postgres: str) -> None:
    where = server(postgres)
    assert schema.current(where) is None
    with pytest.raises(RevisionError, match="run: upright init"):
        schema.check(where)
    schema.create(where)
    schema.check(where)


@pytest.mark.may_block  # a migration reads its files on a loop of its own
def test_the_migrations_make_the_same_tables(postgres: str, filled: Place) -> None:
    assert schema.migrate(server(postgres)) == (None, schema.head())
    assert schema.current(server(postgres)) == schema.current(filled)


def test_a_database_that_is_not_there_is_said_without_the_password(postgres_server: Server) -> None:
    address = postgres_server.url("nowhere").replace("postgres@", "postgres:hush@")
    with pytest.raises(StoreUnavailableError, match='"nowhere" does not exist') as refused:
        schema.current(sa.make_url(address))
    assert "hush" not in str(refused.value)


@pytest.mark.may_block  # the driver looks for certificates before it dials
async def test_a_server_that_is_not_there_is_said() -> None:
    nobody = server("postgresql://me@127.0.0.1:1/upright")
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1"):
        await PostgresStore.open(nobody, roll=lambda: 0.5)
