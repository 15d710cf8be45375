"""P8, devices: what an idle link weighs, and how a fleet comes back when its hub restarts."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from websockets.asyncio.client import ClientConnection, connect

from bench.fleet import AT_ONCE, Fleet
from bench.tables import Figure, Report, Table, number
from bench.world import World
from upright.cli.demo.children import Child

WITHIN_S: Final = 600.0
SETTLE_S: Final = 3.0
BIN_S: Final = 0.1
PING_S: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """How many links came, in which time, and what each cost the server, in kB."""

    links: int
    seconds: float
    kb: float


async def run(world: World) -> Report:
    """Weigh idle links against a bare echo server; restart a hub; connect many."""
    count, many, fleet = world.pick((1000, 10_000, 200), (20, 40, 20))
    echo = [await _echo(world, count) for _ in range(world.pick(3, 1))]
    ours = [await _idle(world, count, beats=False) for _ in range(world.pick(3, 1))]
    whole = await _idle(world, many, beats=True)
    came = await _restart(world, fleet)
    link = Figure(name="a link of the hub", unit="kB", values=tuple(one.kb for one in ours))
    bare = Figure(name="a bare echo server's", unit="kB", values=tuple(one.kb for one in echo))
    bins = Counter(int((at - came[0]) / BIN_S) for at in came)
    mean = len(came) / (max(bins) + 1)
    rows = [
        (f"memory of {link.name}, {count} idle", link.shown()),
        (f"memory of {bare.name}", bare.shown()),
        ("ratio (goal: at most 2)", number(link.middle / bare.middle)),
        (f"{many} links: connected in", f"{number(whole.seconds)} s"),
        (f"{many} links: each answered a ping; memory a link", f"{number(whole.kb)} kB"),
        (f"hub restart, {fleet} devices: all back after", f"{number(came[-1] - came[0])} s"),
        ("connects per 100 ms, peak over mean (goal: under 3)", number(max(bins.values()) / mean)),
    ]
    rows.insert(6, ("most links in 100 ms", number(max(bins.values()))))
    notes = (
        "All devices are one process that speaks the real wire: handshake, MAC, inventory, pings.",
        "They redial as execd does: first within 5 s, then with full jitter up to 60 s.",
    )
    return Report(tables=[Table(heading="P8 links", columns=("what", ""), rows=rows, notes=notes)])


# ------------------------------------------------------------------ servers
async def _hub(world: World, folder: Path, count: int, port: int = 0) -> tuple[Child, int]:
    ready = folder / f"ready-{perf_counter():.6f}"
    words = [str(folder), str(port), str(count), str(ready)]
    argv = [sys.executable, "-m", "bench.programs.links_hub", *words]
    child, said = await world.start(f"hub-{folder.name}", argv, ready)
    return child, int(said)


def _resident_kb(child: Child) -> int:
    status = Path(f"/proc/{child.process.pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


@asynccontextmanager
async def _sailing(fleet: Fleet, count: int) -> AsyncIterator[float]:
    """Have that many devices linked; yield how long it took."""
    draw = secrets.SystemRandom()
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for first in range(0, count, AT_ONCE):
            for number_ in range(first, min(first + AT_ONCE, count)):
                sails = fleet.device(number_, draw.uniform)
                tasks.append(group.create_task(sails, name=f"device {number_}"))
            await fleet.until(lambda: len(fleet.came) >= len(tasks), WITHIN_S)
        yield perf_counter() - began
        for task in tasks:
            task.cancel()


async def _idle(world: World, count: int, *, beats: bool) -> Weighed:
    hub, port = await _hub(world, world.place("links"), count)
    before = _resident_kb(hub)
    fleet = Fleet(port)
    async with _sailing(fleet, count) as seconds:
        await asyncio.sleep(SETTLE_S)
        if beats:
            await fleet.until(lambda: len(fleet.beats) == count, 4 * PING_S + WITHIN_S / 4)
        kb = (_resident_kb(hub) - before) / count
        links = fleet.up
    await world.end(hub)
    return Weighed(links=links, seconds=seconds, kb=kb)


async def _echo(world: World, count: int) -> Weighed:
    ready = world.place("echo") / "ready"
    argv = [sys.executable, "-m", "bench.programs.echo", str(ready)]
    child, port = await world.start(f"echo-{ready.parent.name}", argv, ready)
    url, before, began = f"ws://127.0.0.1:{port}/v1/device", _resident_kb(child), perf_counter()
    held: list[ClientConnection] = [
        await connect(url, compression=None, ping_interval=None, proxy=None) for _ in range(count)
    ]
    await asyncio.sleep(SETTLE_S)
    kb = (_resident_kb(child) - before) / count
    for one in held:
        one.transport.abort()
    child.process.terminate()
    await child.process.wait()
    world.children.forget(child)
    return Weighed(links=count, seconds=perf_counter() - began, kb=kb)


async def _restart(world: World, count: int) -> list[float]:
    """Restart the hub under a fleet; return when each link was back, in order."""
    folder = world.place("restart")
    hub, port = await _hub(world, folder, count)
    fleet = Fleet(port)
    async with _sailing(fleet, count):
        fleet.came.clear()
        await world.end(hub)
        hub, _ = await _hub(world, folder, count, port)
        await fleet.until(lambda: len(fleet.came) >= count, WITHIN_S / 4)
        came = sorted(fleet.came)
    await world.end(hub)
    return came
