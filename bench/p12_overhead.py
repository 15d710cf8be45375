"""P12, the hub's overhead: its CPU for each step of a turn, outside the model; many sessions busy.

Each session's worker gets news at the same time; a step is one call of the model, which answers at
once, and what the hub does for it: claim, inbox, request, reply, tool, rest, their commits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from bench import model
from bench.keepalive import KeepAlive, connect
from bench.model import Heard
from bench.p2_pass_through import CONFIG
from bench.payloads import comment, request
from bench.tables import Figure, Report, Table
from bench.world import SOURCE, World

CLIENTS: Final = 8
HEARD_S: Final = 120.0
SETTLE_S: Final = 1.0
TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
ROOM: Final = """
[agents.developer]
open_items = 10000
"""
"""One agent has all the items here; by default it may have 50 open at once."""
NOTES: Final = (
    "the goal is under 5 ms of CPU a step",
    "CPU: all threads of the hub's process, from /proc; intake of the news is in it",
    "wall: from the first news sent to the last request at the model, over the steps",
)


async def run(world: World) -> Report:
    """Open the items, then send news to all of them at once, round after round."""
    items, rounds = world.pick(200, 10), world.pick(3, 1)
    async with model.serving() as (heard, base):
        hub = await world.hub(f"{CONFIG.format(model=base, source=SOURCE)}{ROOM}")
        links = [await connect(hub.url) for _ in range(CLIENTS)]
        stat = Path(f"/proc/{hub.child.process.pid}/stat")
        busy = _Busy(heard=heard, links=links, host=urlsplit(hub.url).netloc, stat=stat)
        try:
            for item in range(1, items + 1):
                await busy.open(item)
            told = [await busy.round(number, items) for number in range(1, rounds + 1)]
        finally:
            for link in links:
                link.close()
            await world.end(hub.child)
    cpu = Figure(name="CPU a step", unit="ms", values=tuple(one[0] for one in told))
    wall = Figure(name="wall a step", unit="ms", values=tuple(one[1] for one in told))
    rows = [(one.name, one.shown()) for one in (cpu, wall)]
    heading = f"P12 overhead: {items} sessions busy at once"
    table = Table(heading=heading, columns=("", "median (range)"), rows=rows, notes=NOTES)
    return Report(tables=[table])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Busy:
    """A hub that is told news by several clients; ``stat`` tells its CPU time."""

    heard: Heard
    links: list[KeepAlive]
    host: str
    stat: Path

    async def open(self, item: int) -> None:
        """Have the router open an item, and its worker wait."""
        await self._tell(self.links[0], iter((item,)), 0)
        await self._heard(1)

    async def round(self, number: int, items: int) -> tuple[float, float]:
        """Tell every item news at once; return ms of CPU and of wall for each step."""
        before, steps = await asyncio.to_thread(_cpu_s, self.stat), self.heard.routers
        began = perf_counter()
        waiting = iter(range(1, items + 1))
        async with asyncio.TaskGroup() as group:
            for link in self.links:
                group.create_task(self._tell(link, waiting, number * items))
            group.create_task(self._heard(items))
        took = perf_counter() - began
        await asyncio.sleep(SETTLE_S)  # the ends of the last turns
        spent = await asyncio.to_thread(_cpu_s, self.stat) - before
        steps = items + self.heard.routers - steps
        return 1000 * spent / steps, 1000 * took / steps

    async def _tell(self, link: KeepAlive, waiting: Iterator[int], first: int) -> None:
        for item in waiting:
            serial = first + item
            sent = request(self.host, f"guid-{serial}", *comment(serial, item))
            status, _ = await link.ask(sent)
            assert status == 202, status

    async def _heard(self, items: int) -> None:
        async with asyncio.timeout(HEARD_S):
            for _ in range(items):
                await self.heard.workers.get()


def _cpu_s(stat: Path) -> float:
    """Return the CPU time of a process, user and system."""
    words = stat.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * TICK_S
