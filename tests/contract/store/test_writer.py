from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from upright.store.errors import StoreUnavailableError
from upright.store.writer import MAX_UNITS, Unit, Writer, open_engine

INSERT: Final = sa.text("INSERT INTO t VALUES (:x)")
SELECT: Final = sa.text("SELECT x FROM t ORDER BY rowid")

# Many callers write as fast as they can, and each number is printed once its write was answered.
CALLERS: Final = """
import asyncio, itertools, sys
from sqlalchemy import text
from upright.store.writer import Writer, open_engine

async def caller(writer, numbers):
    for x in numbers:
        await writer.run(lambda c: c.execute(text("INSERT INTO t VALUES (:x)"), {"x": x}).rowcount)
        print(x, flush=True)

async def main():
    writer, numbers = Writer(open_engine(sys.argv[1])), itertools.count()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(32):
            tasks.create_task(caller(writer, numbers))

asyncio.run(main())
"""


def add(x: object) -> Unit[object]:
    """Make a unit that inserts *x* and returns how many rows it made."""
    return lambda connection: connection.execute(INSERT, {"x": x}).rowcount


async def outcome(call: Awaitable[object]) -> object:
    """Return what a call returns, or the error that it raises."""
    try:
        return await call
    except Exception as error:  # noqa: BLE001  # the test looks at the error
        return error


async def behind_a_held_unit(writer: Writer, *units: Unit[object]) -> list[object]:
    """Queue *units* while another one is under way, so that they share one transaction."""
    began, go_on = threading.Event(), threading.Event()

    def hold(_: sa.Connection) -> object:
        began.set()
        return go_on.wait(5)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run(hold))
        await asyncio.to_thread(began.wait, 5)
        waiting = [tasks.create_task(outcome(writer.run(unit))) for unit in units]
        await asyncio.sleep(0)
        go_on.set()
    return [task.result() for task in waiting]


def stored(path: Path) -> list[object]:
    """Read the table through a reader of its own."""
    engine = open_engine(str(path), read_only=True)
    with engine.connect() as connection:
        found = list(connection.scalars(SELECT))
    engine.dispose()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open_engine(str(tmp_path / "s.db")).begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (x UNIQUE)"))
    return tmp_path / "s.db"


@pytest.fixture
def engine(path: Path) -> sa.Engine:
    return open_engine(str(path))


@pytest.fixture
async def writer(engine: sa.Engine) -> AsyncIterator[Writer]:
    made = Writer(engine)
    yield made
    await made.close()


@pytest.mark.case("NA/7564")
async def test_an_answer_means_stored(writer: Writer, path: Path) -> None:
    answer = await writer.run(add(1))
    assert (answer, await asyncio.to_thread(stored, path)) == (1, [1])


async def test_units_that_queue_up_share_a_transaction_and_keep_their_order(
    writer: Writer, engine: sa.Engine, path: Path
) -> None:
    commits = list[sa.Connection]()
    sa.event.listen(engine, "commit", commits.append)
    await behind_a_held_unit(writer, *(add(n) for n in range(50)))
    assert (len(commits), await asyncio.to_thread(stored, path)) == (2, list(range(50)))


async def test_a_transaction_holds_no_more_units_than_its_limit(
    writer: Writer, engine: sa.Engine
) -> None:
    commits = list[sa.Connection]()
    sa.event.listen(engine, "commit", commits.append)
    await behind_a_held_unit(writer, *(add(n) for n in range(MAX_UNITS + 1)))
    assert len(commits) == 3


async def test_a_unit_that_fails_takes_nothing_else_with_it(writer: Writer, path: Path) -> None:
    def half(connection: sa.Connection) -> object:
        connection.execute(INSERT, {"x": "half"})
        raise ValueError

    answers = await behind_a_held_unit(writer, add(1), half, add(1), add(2))
    assert [type(a) for a in answers] == [int, ValueError, sa.exc.IntegrityError, int]
    assert await asyncio.to_thread(stored, path) == [1, 2]


@pytest.mark.case("CW/1873")
def test_a_released_savepoint_does_not_outlive_the_transaction_around_it(
    engine: sa.Engine, path: Path
) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        connection.exec_driver_sql("SAVEPOINT unit")
        connection.execute(INSERT, {"x": 1})
        connection.exec_driver_sql("RELEASE unit")
        seen_by_others = stored(path)
        transaction.rollback()
    assert (seen_by_others, stored(path)) == ([], [])


def test_the_driver_begins_nothing_by_itself(engine: sa.Engine) -> None:
    raw = engine.raw_connection()
    raw.cursor().execute("INSERT INTO t VALUES (1)")
    driver = raw.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    assert not driver.in_transaction
    raw.close()


async def test_a_unit_that_was_done_is_lost_with_a_later_one_that_ends_the_transaction(
    writer: Writer, path: Path
) -> None:
    answers = await behind_a_held_unit(writer, add("a"), roll_all_back, add("c"))
    lost = [StoreUnavailableError, sa.exc.IntegrityError, StoreUnavailableError]
    assert [type(a) for a in answers] == lost
    assert await asyncio.to_thread(stored, path) == []


def roll_all_back(connection: sa.Connection) -> object:
    """Make SQLite end the whole transaction, as a full disk does."""
    return connection.execute(sa.text("INSERT OR ROLLBACK INTO t VALUES ('a')")).rowcount


async def test_a_full_disk_loses_the_whole_group_says_so_and_is_survived(
    engine: sa.Engine, path: Path
) -> None:
    sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count=8"))
    writer = Writer(engine)
    answers = await behind_a_held_unit(writer, add("a"), add("b" * 200_000), add("c"))
    await writer.run(add("d"))
    await writer.close()
    assert [type(a) for a in answers] == [StoreUnavailableError] * 3
    said = "database or disk is full; is there room on its disk?"  # no statement, no values
    assert {str(a) for a in answers} == {said}
    assert await asyncio.to_thread(stored, path) == ["d"]


@pytest.mark.case("DB/761")
async def test_a_lock_in_spite_of_the_guard_is_an_answer_and_is_survived(
    engine: sa.Engine, path: Path
) -> None:
    sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA busy_timeout=1"))
    writer = Writer(engine)
    await writer.run(add("a"))
    thief = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    await asyncio.to_thread(thief.execute, "BEGIN IMMEDIATE")
    refused = await outcome(writer.run(add("b")))
    await asyncio.to_thread(thief.execute, "ROLLBACK")
    await asyncio.to_thread(thief.close)
    await writer.run(add("c"))
    await writer.close()
    assert (type(refused), str(refused)) == (StoreUnavailableError, "database is locked")
    assert await asyncio.to_thread(stored, path) == ["a", "c"]


async def test_what_is_a_units_own_fault_stays_its_own(writer: Writer) -> None:
    wrong = await outcome(writer.run(lambda c: c.execute(sa.text("SELECT * FROM nowhere"))))
    assert isinstance(wrong, sa.exc.OperationalError)


async def test_a_file_that_cannot_be_opened_is_an_answer_and_is_tried_again(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "later"
    writer = Writer(await asyncio.to_thread(open_engine, str(folder / "s.db")))
    first = await outcome(writer.run(lambda _: 1))
    await asyncio.to_thread(folder.mkdir)
    second = await outcome(writer.run(lambda _: 2))
    await writer.close()
    assert (type(first), second) == (StoreUnavailableError, 2)


async def test_a_cancelled_caller_disturbs_nobody(writer: Writer, path: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(writer.run(add(1)))
        await asyncio.sleep(0)
        gone.cancel()
        await writer.run(add(2))
    assert await asyncio.to_thread(stored, path) == [1, 2]


async def test_closing_finishes_what_is_queued(engine: sa.Engine, path: Path) -> None:
    writer = Writer(engine)
    async with asyncio.TaskGroup() as tasks:
        for n in range(300):
            tasks.create_task(writer.run(add(n)))
        await asyncio.sleep(0)
        await writer.close()
    assert await asyncio.to_thread(stored, path) == list(range(300))


async def test_a_closed_writer_refuses(writer: Writer) -> None:
    await writer.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await writer.run(add(1))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_nobody_waits_for_a_thread_that_died(engine: sa.Engine) -> None:
    def die(_: sa.Connection) -> object:
        raise SystemExit

    writer = Writer(engine)
    answers = await behind_a_held_unit(writer, die, add(1))
    assert [type(a) for a in answers] == [StoreUnavailableError] * 2
    await writer.close()


async def test_the_writer_outlives_a_loop_that_was_closed_under_it(
    writer: Writer, path: Path
) -> None:
    def other_loop() -> None:
        began = threading.Event()

        async def leave() -> None:
            async with asyncio.timeout(5):
                call = asyncio.TaskGroup()
                async with call as tasks:
                    task = tasks.create_task(writer.run(lambda _: began.wait(5)))
                    await asyncio.sleep(0)
                    task.cancel()

        asyncio.run(leave())
        began.set()

    await asyncio.to_thread(other_loop)
    await writer.run(add(1))
    assert await asyncio.to_thread(stored, path) == [1]


def test_a_reader_cannot_write(path: Path) -> None:
    engine = open_engine(str(path), read_only=True)
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError, match="readonly"):
        connection.execute(INSERT, {"x": 1})
    engine.dispose()


@pytest.mark.case("GT/2808")
def test_the_file_is_durable_and_its_log_is_bounded(engine: sa.Engine) -> None:
    names = ("journal_mode", "synchronous", "journal_size_limit")
    with engine.connect() as connection:
        found = [connection.scalar(sa.text(f"PRAGMA {name}")) for name in names]
    assert found == ["wal", 2, 64 * 1024 * 1024]


@pytest.mark.case("SW/1228")
def test_a_begin_takes_the_write_lock_at_once(engine: sa.Engine, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, timeout=0)
    with engine.begin(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()


@pytest.mark.case("NA/7564")
def test_what_was_answered_survives_a_kill(path: Path) -> None:
    command = [sys.executable, "-c", CALLERS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        answered = {int(child.stdout.readline()) for _ in range(3000)}
        child.send_signal(signal.SIGKILL)
        answered |= {int(line) for line in child.stdout.read().splitlines()[:-1]}
    assert not answered - set(stored(path))
