"""What every store must do, whichever database is behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable

import pytest
import sqlalchemy as sa

from fixtures.databases import opened
from upright.store import schema
from upright.store.address import Address
from upright.store.errors import RevisionError, StoreInUseError, StoreUnavailableError
from upright.store.storage import Storage
from upright.store.tables import META
from upright.store.unit import Unit


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Storage]:
    made = await opened(address)
    yield made
    await made.close()


def put(c: sa.Connection, key: str = "hub", value: str = "hb_1") -> int:
    return c.execute(META.insert().values(key=key, value=value)).rowcount


def names(c: sa.Connection) -> list[str]:
    return list(c.scalars(sa.select(META.c.key).order_by(META.c.key)))


async def test_a_read_sees_every_write_that_was_answered(store: Storage) -> None:
    assert await store.write(put) == 1
    assert await store.read(names) == ["hub"]


@pytest.mark.case("WAL")
async def test_a_read_cannot_write(store: Storage) -> None:
    with pytest.raises(sa.exc.DBAPIError, match=r"readonly|read-only"):
        await store.read(put)
    assert await store.read(names) == []


async def test_what_a_unit_raises_is_raised_and_nothing_of_it_is_stored(store: Storage) -> None:
    def half(c: sa.Connection) -> None:
        put(c)
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await store.write(half)
    assert await store.read(names) == []


async def test_a_key_that_is_taken_is_the_units_own_error(store: Storage) -> None:
    await store.write(put)
    with pytest.raises(sa.exc.IntegrityError):
        await store.write(put)


async def test_a_part_that_fails_takes_back_its_own_rows_alone(store: Storage) -> None:
    def unit(c: sa.Connection) -> None:
        put(c, "before")
        u = Unit(c, 0, lambda kind: kind)
        with pytest.raises(sa.exc.IntegrityError):
            u.attempt(lambda: (put(c, "part"), put(c, "before")))
        put(c, "behind")

    await store.write(unit)
    assert await store.read(names) == ["before", "behind"]


async def test_units_that_are_handed_in_together_are_each_done_once(store: Storage) -> None:
    def count_up(c: sa.Connection) -> int:
        found = c.scalar(sa.select(META.c.value).where(META.c.key == "n"))
        if found is None:
            put(c, "n", "1")
            return 1
        c.execute(META.update().where(META.c.key == "n").values(value=str(int(found) + 1)))
        return int(found) + 1

    async with asyncio.TaskGroup() as group:
        counted = [group.create_task(store.write(count_up)) for _ in range(24)]
    assert sorted(task.result() for task in counted) == list(range(1, 25))


async def test_ids_sort_by_their_bytes(store: Storage) -> None:
    def unit(c: sa.Connection) -> None:
        for key in ("tr_9", "tr_:", "tr`", "trA", "tr_a", "tr_"):
            put(c, key)

    await store.write(unit)
    assert await store.read(names) == ["trA", "tr_", "tr_9", "tr_:", "tr_a", "tr`"]


async def test_a_cancelled_caller_disturbs_nobody(store: Storage) -> None:
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(store.write(lambda c: put(c, "gone")))
        await asyncio.sleep(0)
        gone.cancel()
        await store.write(lambda c: put(c, "kept"))
    assert "kept" in await store.read(names)


async def test_closing_finishes_what_was_begun_and_refuses_what_comes_later(
    store: Storage, address: Address
) -> None:
    async with asyncio.TaskGroup() as group:
        last = group.create_task(store.write(put))
        await asyncio.sleep(0)
        await store.close()
    await store.close()
    assert last.result() == 1
    calls: tuple[Awaitable[object], ...] = (store.read(names), store.write(put))
    for call in calls:
        with pytest.raises(StoreUnavailableError, match="closed"):
            await call
    again = await opened(address)
    assert await again.read(names) == ["hub"]
    await again.close()


async def test_a_second_hub_is_refused_by_the_first_ones_name_until_that_closes(
    store: Storage, address: Address
) -> None:
    with pytest.raises(StoreInUseError) as refused:
        await opened(address)
    assert refused.value.pid == os.getpid()
    with pytest.raises(StoreInUseError):
        await asyncio.to_thread(schema.migrate, address)
    await store.close()
    second = await opened(address)
    await second.close()


@pytest.mark.may_block  # a migration reads its files on a loop of its own, in a thread
async def test_another_revision_is_refused_and_leaves_nothing_held(
    store: Storage, address: Address
) -> None:
    await store.write(lambda c: _rename(c, "9999"))
    await store.close()
    with pytest.raises(RevisionError, match="install the Upright that made it"):
        await opened(address)
    assert await asyncio.to_thread(schema.current, address) == "9999"
    with pytest.raises(RevisionError, match="install the Upright that made it"):
        await asyncio.to_thread(schema.migrate, address)


def _rename(c: sa.Connection, revision: str) -> int:
    changed = sa.text("UPDATE alembic_version SET version_num = :revision")
    return c.execute(changed, {"revision": revision}).rowcount


@pytest.mark.may_block  # a migration reads its files on a loop of its own
def test_a_filled_database_is_not_filled_again(address: Address) -> None:
    with pytest.raises(FileExistsError):
        schema.create(address)
    assert schema.migrate(address) == (schema.head(), schema.head())
