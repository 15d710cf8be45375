from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from upright.store import schema
from upright.store.database import Store
from upright.store.errors import StoreUnavailableError
from upright.store.tables import META
from upright.store.writer import MAX_READERS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    schema.create(tmp_path / "state" / "s.db")
    return tmp_path / "state" / "s.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    opened = await asyncio.to_thread(Store.open, path)
    yield opened
    await opened.close()


def put(c: sa.Connection) -> int:
    return c.execute(META.insert().values(key="hub", value="hb_1")).rowcount


def names(c: sa.Connection) -> list[str]:
    return list(c.scalars(sa.select(META.c.key)))


async def test_a_read_sees_every_write_that_was_answered(store: Store) -> None:
    await store.write(put)
    assert await store.read(names) == ["hub"]


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(sa.exc.OperationalError, match="readonly"):
        await store.read(put)


async def test_a_file_that_is_no_database_any_more_can_be_told_from_a_wrong_query(
    tmp_path: Path, empty_file: Path
) -> None:
    torn = tmp_path / "torn.db"
    content = await asyncio.to_thread(empty_file.read_bytes)
    await asyncio.to_thread(torn.write_bytes, content)
    store = await asyncio.to_thread(Store.open, torn)
    await asyncio.to_thread(torn.write_bytes, b"\x55" * len(content))
    with pytest.raises(StoreUnavailableError, match=r"^file is not a database$"):
        await store.read(names)
    await store.close()


async def test_a_wrong_query_is_its_own_fault(store: Store) -> None:
    with pytest.raises(sa.exc.OperationalError, match="no such table"):
        await store.read(lambda c: c.scalar(sa.text("SELECT 1 FROM nowhere")))


async def test_a_read_is_one_snapshot_and_does_not_hold_writers_up(store: Store) -> None:
    began, go_on = threading.Event(), threading.Event()

    def twice(c: sa.Connection) -> tuple[list[str], list[str]]:
        before = names(c)
        began.set()
        go_on.wait(5)
        return before, names(c)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(store.read(twice))
        await asyncio.to_thread(began.wait, 5)
        await store.write(put)
        go_on.set()
    assert reading.result() == ([], [])


@pytest.mark.case("GT/2808")
async def test_no_reader_is_left_open(store: Store) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(10 * MAX_READERS):
            tasks.create_task(store.read(names))
    await store.write(put)
    with sqlite_cut_log(store.path) as busy:
        assert busy == 0


class sqlite_cut_log:  # noqa: N801  # reads as a statement
    """Cut the log to nothing; ``busy`` is 1 when a reader still needs it."""

    def __init__(self, path: Path) -> None:
        self._engine = sa.create_engine(f"sqlite:///{path}")

    def __enter__(self) -> int:
        with self._engine.connect() as connection:
            row = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        return int(row[0])

    def __exit__(self, *_: object) -> None:
        self._engine.dispose()


async def test_closing_lets_a_read_that_began_end(store: Store) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(c: sa.Connection) -> list[str]:
        began.set()
        go_on.wait(5)
        return names(c)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(store.read(slow))
        await asyncio.to_thread(began.wait, 5)
        tasks.create_task(store.close())
        await asyncio.sleep(0)
        go_on.set()
    assert reading.result() == []


async def test_a_closed_store_refuses_reads_and_writes(store: Store) -> None:
    await store.close()
    for call in (store.read(names), store.write(put)):
        with pytest.raises(StoreUnavailableError, match="closed"):
            await call


async def test_closing_leaves_the_whole_truth_in_one_file(store: Store, path: Path) -> None:
    await store.write(put)
    await store.close()
    left = await asyncio.to_thread(lambda: sorted(file.name for file in path.parent.iterdir()))
    assert left == ["s.db", "s.db.lock"]


def test_only_its_owner_can_look_into_a_fresh_database(path: Path) -> None:
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path)]
    assert modes == [0o700, 0o600]


def test_what_an_open_store_writes_beside_the_file_is_as_private(path: Path) -> None:
    async def look() -> set[int]:
        store = await asyncio.to_thread(Store.open, path)
        await store.write(put)
        files = await asyncio.to_thread(lambda: list(path.parent.iterdir()))
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
        await store.close()
        return modes

    assert asyncio.run(look()) == {0o600}
