"""Races on a server of several writers: what loses some in a row runs alone, and comes through."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
import sqlalchemy as sa

from upright.store.address import Server as Place
from upright.store.pool import PoolLimits
from upright.store.postgres import PostgresStore
from upright.store.tables import META

RACE: Final = sa.text("DO $$ BEGIN RAISE EXCEPTION 'race' USING ERRCODE = '40001'; END $$")


def put(c: sa.Connection, key: str = "hub") -> int:
    return c.execute(META.insert().values(key=key, value="-")).rowcount


def keys(c: sa.Connection) -> list[str]:
    return list(c.scalars(sa.select(META.c.key)))


@pytest.mark.clause("B2.5", "B8.5")
async def test_a_long_unit_is_not_outrun_for_ever_by_short_ones(filled: Place) -> None:
    """As a turn with a full inbox was: by its own lease's renewals, and by what came meanwhile."""
    store = await PostgresStore.open(filled, roll=lambda: 0.5)
    await store.write(put)
    runs, done = Counter[str](), asyncio.Event()
    same = META.update().where(META.c.key == "hub")

    def long(c: sa.Connection) -> None:
        runs["long"] += 1
        c.execute(sa.text("SELECT pg_sleep(0.05)"))
        c.execute(same.values(value="long"))

    def short(c: sa.Connection) -> None:
        c.execute(same.values(value="short"))

    async def runner() -> None:
        while not done.is_set():
            await store.write(short)

    async with asyncio.TaskGroup() as group:
        group.create_task(runner())
        await store.write(long)
        done.set()
    assert runs["long"] == PoolLimits().races + 1
    await store.close()


async def test_two_that_are_outrun_at_once_both_come_through(filled: Place) -> None:
    store = await PostgresStore.open(
        filled, roll=lambda: 0.5, limits=replace(PoolLimits(), races=1)
    )
    failed = Counter[str]()

    def unlucky(name: str) -> Callable[[sa.Connection], int]:
        def unit(c: sa.Connection) -> int:
            failed[name] += 1
            if failed[name] == 1:
                c.execute(RACE)
            return put(c, name)

        return unit

    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(store.write(unlucky(f"n{n}")))
    assert len(await store.read(keys)) == len(failed) == 6
    await store.close()
