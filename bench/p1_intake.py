"""P1, intake: signed webhooks to durable, deduped, judged and routed triggers, against peers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from bench import postgres
from bench.payloads import MAKERS
from bench.tables import Figure, Plot, Report, Table, ratio
from bench.world import SOURCE, World

OURS: Final = "upright serve"
BARE: Final = "bare handler"
CLIENTS: Final = (8, 64)
MOST_PER_S: Final = 5_000  # so many bodies are made for a second; when they run out, it is over
GOALS: Final = (
    "the goal is 0.75 of the bare handler, and 8 times each of the endpoints below it",
    (
        "bare handler: the HMAC and one row in the same SQLite by the same group commit; "
        "no parsing, no dedupe by content, no thread, no verdict"
    ),
    "one session and one commit a request: the async ORM on SQLite (WAL, full durability)",
    "DBOS and procrastinate only enqueue, on PostgreSQL with full durability; nobody works on it",
)

Case = tuple[str, int]
"""A size of body, a number of clients."""


@dataclass(slots=True)
class Rounds:
    """What was measured: by case and server, a list over the rounds."""

    per_s: dict[Case, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    p99_ms: dict[Case, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )


async def run(world: World) -> Report:
    """Measure every server in turn, round after round."""
    urls, missing = await _servers(world)
    rounds, serials = Rounds(), count(0)
    for turn in range(world.pick(3, 1)):
        names = list(urls)
        names = names[turn % len(names) :] + names[: turn % len(names)]
        for case in ((size, clients) for size in MAKERS for clients in CLIENTS):
            for name in names:
                got = await _load(world, urls[name], case, next(serials))
                rounds.per_s[case][name].append(got["per_s"])
                rounds.p99_ms[case][name].append(got["p99_ms"])
    return _report(rounds, missing)


async def _servers(world: World) -> tuple[dict[str, str], dict[str, str]]:
    """Start what can be started: (addresses, why the others can't)."""
    hub = await world.hub(f'{SOURCE}\n[logs]\nlevel = "warning"\n')
    urls, missing = {OURS: hub.url}, dict[str, str]()
    urls[BARE] = await _endpoint(world, "bare", of_peers=False)
    needs = {
        "ORM session a request": ("orm", ("aiohttp", "sqlalchemy", "aiosqlite")),
        "procrastinate defer": ("procrastinate_defer", ("aiohttp", "procrastinate", "psycopg")),
        "DBOS enqueue": ("dbos_enqueue", ("aiohttp", "dbos")),
    }
    for name, (program, packages) in needs.items():
        lacks = world.peers.lacks(*packages)
        if program != "orm":
            lacks = lacks or postgres.lacks()
        if lacks:
            missing[name] = lacks
        else:
            urls[name] = await _endpoint(world, program, of_peers=True)
    return urls, missing


async def _endpoint(world: World, program: str, *, of_peers: bool) -> str:
    folder = world.place(program)
    database = str(folder / "rows.db")
    if program in {"procrastinate_defer", "dbos_enqueue"}:
        database = await asyncio.to_thread(world.postgres)
    ready = folder / "ready"
    argv = [*world.program(program, of_peers=of_peers), database, str(ready)]
    _, url = await world.start(program, argv, ready)
    return url


async def _load(world: World, url: str, case: Case, serial: int) -> Mapping[str, Any]:
    size, clients = case
    seconds = world.pick(1.5, 0.2)
    most = int(MOST_PER_S * seconds)
    given = {
        "--size": size,
        "--clients": clients,
        "--seconds": seconds,
        "--requests": most + clients,
        "--first": serial * 2 * most,
    }
    words = [str(word) for pair in given.items() for word in pair]
    got: dict[str, Any] = await world.ask([*world.program("load", of_peers=False), url, *words])
    if got["bad"] or not got["requests"]:
        said = f"{url} answered {got}"
        raise RuntimeError(said)
    return got


# ------------------------------------------------------------------ what is written down
def _report(rounds: Rounds, missing: Mapping[str, str]) -> Report:
    tables, plots = list[Table](), list[Plot]()
    for case, by_name in rounds.per_s.items():
        size, clients = case
        figures = [Figure(name=name, unit="/s", values=tuple(v)) for name, v in by_name.items()]
        ours = next(one for one in figures if one.name == OURS)
        rows = [
            (
                one.name,
                one.shown(),
                Figure(name="", unit="ms", values=tuple(rounds.p99_ms[case][one.name])).shown(),
                "" if one is ours else ratio(ours, one),
            )
            for one in sorted(figures, key=lambda one: -one.middle)
        ]
        lost = [Figure(name=name, unit="/s", why=why) for name, why in missing.items()]
        rows += [(one.name, one.shown(), "", "") for one in lost]
        heading = f"P1 intake: bodies of {size}, {clients} clients"
        columns = ("endpoint", "triggers/s", "p99 of the answer", "upright over it")
        last = len(tables) == len(rounds.per_s) - 1
        notes = GOALS if last else ()
        tables.append(Table(heading=heading, columns=columns, rows=rows, notes=notes))
        if clients == max(CLIENTS):
            name = f"p1-{size.replace(' ', '').lower()}"
            plots.append(Plot(name=name, heading=heading, figures=[*figures, *lost]))
    return Report(tables=tables, plots=plots)
