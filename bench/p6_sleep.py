"""P6, sleeping work: what intake, a wake, a tick, a start cost while 10^3 to 10^6 items sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import sqlalchemy as sa

from bench import postgres, sleepers
from bench.tables import Report, Table, number
from bench.world import World
from upright.engine.clock import SortableIds, now_ms
from upright.engine.embedded import recover
from upright.engine.units import Units
from upright.store import deadlines, intake, schema, sessions
from upright.store.address import Address, server
from upright.store.opening import open_storage
from upright.store.unit import Unit

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
QUICK: Final = (100, 1_000)
WITHIN_S: Final = 3600.0
PART: Final = 20_000  # copies a commit
COSTS: Final = {
    "intake of a trigger": "ms",
    "wake of a sleeper": "ms",
    "tick of the timers": "ms",
    "claim with nothing ready": "ms",
    "open and recover": "ms",
    "memory of it": "KiB",
}
NOTES: Final = (
    "the goal for intake from 10^3 to 10^6: at most 3.5 times on SQLite, 1.6 times on PostgreSQL",
    "tick and claim at most 1.3 times; a start under 2 s at 10^5; nothing in memory for a sleeper",
    "open and recover: what a start does with the rows, in a process that has everything imported",
    "memory of it: what the process holds more when that is done; a sleeper is rows alone",
    "PostgreSQL has counted its rows, as autovacuum lets it within a minute: before, 76 ms at 10^5",
)


async def run(world: World) -> Report:
    """Fill databases of each kind and size, and measure on each."""
    tables = [await _kind(world, "SQLite", _file)]
    if lacks := postgres.lacks():
        lost = [("PostgreSQL", f"missing: {lacks}")]
        tables.append(Table(heading="P6 on PostgreSQL", columns=("kind", ""), rows=lost))
    else:
        tables.append(await _kind(world, "PostgreSQL", _server))
    return Report(tables=tables)


def _file(world: World) -> Address:
    return world.place("sleep") / "upright.db"


def _server(world: World) -> Address:
    return server(world.postgres())


async def _kind(world: World, kind: str, make: Callable[[World], Address]) -> Table:
    by_size: dict[int, dict[str, float]] = {}
    most = 100_000 if kind == "PostgreSQL" else SIZES[-1]  # on two cores a fill takes minutes
    for size in world.pick(SIZES, QUICK):
        if size <= most:
            where = await asyncio.to_thread(make, world)
            by_size[size] = await _measured(world, where, size)
    first = next(iter(by_size.values()))
    rows = [
        (
            name,
            *(f"{number(costs[name])} {unit}" for costs in by_size.values()),
            number(list(by_size.values())[-1][name] / first[name]) if first[name] else "-",
        )
        for name, unit in COSTS.items()
    ]
    columns = ("cost", *(f"{size} asleep" for size in by_size), "last over first")
    return Table(heading=f"P6 on {kind}", columns=columns, rows=rows, notes=NOTES)


async def _measured(world: World, where: Address, size: int) -> dict[str, float]:
    await asyncio.to_thread(schema.create, where)
    store = await open_storage(where, lambda: 0.5)
    units = Units(store, world.clock, SortableIds(world.clock), committed=lambda: None)
    own = await units.write(sleepers.sleeper)
    for first in range(1, size, PART):
        last = min(first + PART, size) - 1
        await store.write(partial(sleepers.copies, own=own, first=first, last=last))
    if not isinstance(where, Path):
        await store.write(lambda c: c.execute(sa.text("ANALYZE")))
    await store.close()

    before = _resident()
    began = perf_counter()
    store = await open_storage(where, lambda: 0.5)
    units = Units(store, world.clock, SortableIds(world.clock), committed=lambda: None)
    await units.write(recover)
    await units.read(deadlines.next_ms)
    opened_ms = 1000 * (perf_counter() - began)
    held = max(_resident() - before, 0)
    try:
        return {
            **await _costs(world, units, size),
            "open and recover": opened_ms,
            "memory of it": held,
        }
    finally:
        await store.close()


async def _costs(world: World, units: Units, size: int) -> dict[str, float]:
    numbers, times = count(1), world.pick(200, 20)

    async def take_in() -> None:
        await _accept(units, f"new{next(numbers)}", f"other:{next(numbers)}")

    async def wake() -> None:
        n = next(numbers)
        await _accept(units, f"news{n}", f"pr:0#{n * 7919 % (size - 1) + 1}")

    async def tick() -> None:
        await units.read(deadlines.next_ms)
        await units.write(deadlines.fire_due)

    async def claim() -> None:
        at_ms = now_ms(world.clock) - 365 * 86_400_000  # nothing was ready then
        await units.write(lambda u: sessions.claim(u.c, at_ms, at_ms + 1, 16))
        await units.read(sessions.next_ready_ms)

    todo = (tick, claim, take_in, wake)
    names = list(COSTS)
    named = dict(zip((names[2], names[3], names[0], names[1]), todo, strict=True))
    return {name: await _median_ms(one, times) for name, one in named.items()}


async def _accept(units: Units, name: str, thread: str) -> None:
    given = sleepers.trigger(name, thread=thread)

    def unit(u: Unit) -> None:
        intake.accept(u, sleepers.SOURCE, [given], sleepers.POLICY)

    await units.write(unit)


async def _median_ms(one: Callable[[], Awaitable[None]], times: int) -> float:
    took = []
    for _ in range(times):
        began = perf_counter()
        await one()
        took.append(1000 * (perf_counter() - began))
    return median(took)


def _resident() -> float:
    """Return what this process holds in memory, in KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS"))
