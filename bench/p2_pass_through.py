"""P2, pass-through: from a trigger's acceptance to the first byte of the worker's model request.

The hub is idle, the worker follows the thread and waits: the router is not asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from bench import model, postgres
from bench.keepalive import KeepAlive, connect
from bench.model import Heard
from bench.payloads import comment, request
from bench.tables import Figure, Plot, Report, Table, percentile, ratio
from bench.world import SOURCE, World

ITEMS: Final = 4  # work items: a transcript grows with each news, as it does in use
SETTLE_S: Final = 0.05  # after an answer: the turn's last commits
HEARD_S: Final = 20.0
CONFIG: Final = """\
[model]
base_url = "{model}"
name = "bench"

{source}
[people.ann]
kind = "member"
ids = ["github:ann"]

[[rules]]
name = "a comment is work"
verdict = "explicit"
kinds = ["comment.created"]

[logs]
level = "warning"
"""
NOTES: Final = (
    "the goal is a p50 under 10 ms, and p50 and p99 no worse than any of the peers",
    (
        "from the first byte sent: intake and its commit are in it; from the answer: what is left "
        "once the trigger was acknowledged, which may be less than nothing"
    ),
    (
        "ours ends when the first byte of an HTTP request reaches the model's server; the peers' "
        "ends at the first line of the handler, in the process that enqueued"
    ),
)


@dataclass(slots=True)
class Taken:
    """What was measured, in milliseconds."""

    whole: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


async def run(world: World) -> Report:
    """Measure us, then the peers, round after round."""
    samples = world.pick(40, 4)
    taken: dict[str, list[tuple[float, float]]] = {}
    lacking: dict[str, str] = {}
    for _ in range(world.pick(3, 1)):
        ours = await _ours(world, samples)
        _add(taken, "upright, from the first byte sent", ours.whole)
        _add(taken, "upright, from the answer", ours.after)
        for name, (argv, lacks) in (await _peers(world, samples)).items():
            if lacks:
                lacking[name] = lacks
            else:
                _add(taken, name, await world.ask(argv))
    return _report(taken, lacking)


def _add(taken: dict[str, list[tuple[float, float]]], name: str, ms: list[float]) -> None:
    taken.setdefault(name, []).append((percentile(ms, 0.5), percentile(ms, 0.99)))


async def _ours(world: World, samples: int) -> Taken:
    async with model.serving() as (heard, base):
        hub = await world.hub(CONFIG.format(model=base, source=SOURCE))
        connection = await connect(hub.url)
        try:
            return await _measure(heard, connection, urlsplit(hub.url).netloc, samples)
        finally:
            connection.close()
            await world.end(hub.child)


async def _measure(heard: Heard, connection: KeepAlive, host: str, samples: int) -> Taken:
    serials, taken = count(1), Taken()

    async def tell(number: int) -> tuple[float, float, float]:
        """Send news; return when it was sent, when it was answered, when the model was asked."""
        serial = next(serials)
        sent = request(host, f"guid-{serial}", *comment(serial, number))
        began = perf_counter()
        status, took = await connection.ask(sent)
        assert status == 202, status
        async with asyncio.timeout(HEARD_S):
            asked = await heard.workers.get()
        await asyncio.sleep(SETTLE_S)
        return began, began + took, asked

    for number in range(1, ITEMS + 1):
        await tell(number)  # the router opens an item, the worker looks and waits
    opened = heard.routers
    for sample in range(samples):
        began, answered, asked = await tell(sample % ITEMS + 1)
        taken.whole.append(1000 * (asked - began))
        taken.after.append(1000 * (asked - answered))
    assert heard.routers == opened, "the router was asked about news that has a worker"
    return taken


async def _peers(world: World, samples: int) -> dict[str, tuple[list[str], str]]:
    """Return how each peer is run, and what it lacks."""
    peers = world.peers
    few = max(samples // 4, 3)  # one that polls each second takes its time
    plans: dict[str, tuple[str, tuple[str, ...], list[str]]] = {
        "procrastinate on PostgreSQL": (
            "procrastinate_start",
            ("procrastinate", "psycopg"),
            ["--samples", str(samples)],
        ),
        "DBOS queue on PostgreSQL, polling 50 ms": (
            "dbos_start",
            ("dbos",),
            ["--samples", str(samples), "--polling-s", "0.05"],
        ),
        "DBOS queue on PostgreSQL, as it comes": (
            "dbos_start",
            ("dbos",),
            ["--samples", str(few), "--polling-s", "1.0"],
        ),
        "DBOS queue on SQLite, polling 50 ms": (
            "dbos_start",
            ("dbos",),
            ["--samples", str(samples), "--polling-s", "0.05"],
        ),
    }
    found = {}
    for name, (program, packages, words) in plans.items():
        lacks, database = peers.lacks(*packages), ""
        if "SQLite" in name:
            database = f"sqlite:///{world.place('dbos')}/dbos.sqlite"
        elif not (lacks := lacks or postgres.lacks()):
            database = await asyncio.to_thread(world.postgres)
        argv = [*world.program(program, of_peers=True), database, *words]
        found[name] = (argv, lacks)
    return found


def _report(taken: dict[str, list[tuple[float, float]]], lacking: dict[str, str]) -> Report:
    p50 = [Figure(name=n, unit="ms", values=tuple(v[0] for v in t)) for n, t in taken.items()]
    p99 = [Figure(name=n, unit="ms", values=tuple(v[1] for v in t)) for n, t in taken.items()]
    ours50, ours99 = p50[0], p99[0]
    rows = [
        (
            middle.name,
            middle.shown(),
            late.shown(),
            "" if middle.name.startswith("upright") else ratio(ours50, middle),
            "" if middle.name.startswith("upright") else ratio(ours99, late),
        )
        for middle, late in zip(p50, p99, strict=True)
    ]
    lost = [Figure(name=name, unit="ms", why=why) for name, why in lacking.items()]
    rows += [(one.name, one.shown(), "", "", "") for one in lost]
    heading = "P2 pass-through: trigger accepted to the worker's model request, embedded"
    columns = ("path", "p50", "p99", "upright's p50 over it", "upright's p99 over it")
    table = Table(heading=heading, columns=columns, rows=rows, notes=NOTES)
    return Report(
        tables=[table], plots=[Plot(name="p2", heading=f"{heading} (p50)", figures=[*p50, *lost])]
    )
