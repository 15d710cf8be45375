"""P3, folding: a storm on many threads costs each at most one wake a window; nothing is lost.

The hub's own store and turns, in this process and in virtual time: ten seconds of storm pass as
fast as the store takes them, and a turn takes its inbox at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.tables import Figure, Report, Table
from bench.world import World
from upright.api import Actor, Channel, Content, Context, Trigger
from upright.core.fold import QUIET
from upright.core.gate import DEFAULT_RULES, Rules
from upright.core.mandate import Mandate, Trust
from upright.core.trigger import People
from upright.engine.clock import SortableIds, SystemClock
from upright.store import intake, schema, sessions, work
from upright.store.arrivals import Arrival
from upright.store.database import Store
from upright.store.intake import Policy
from upright.store.unit import Connection, Unit

STORM_MS: Final = 10_000
BATCH: Final = 50  # triggers that arrive together: every 50 ms at the full size
SOMEBODY: Final = Actor(id="cal", name="Cal")
SOURCE: Final = "bench"
NOTES: Final = (
    "the goal is at most one wake for each thread and window, and every trigger listed once",
    f"quiet for {QUIET.quiet_ms} ms, at most {QUIET.most_ms} ms; virtual time, a real database",
)


@dataclass(slots=True)
class Storm:
    """What happened: how often each session was woken, and how often each trigger was told."""

    wakes: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    seconds: float = 0.0


async def run(world: World) -> Report:
    """Let a storm come down, and count."""
    threads, triggers = world.pick((100, 10_000), (5, 100))
    storm = await _storm(world.place("fold") / "hub.db", threads, triggers)
    most, lost = max(storm.wakes.values()), storm.sent - len(storm.told)
    doubled = sum(count - 1 for count in storm.told.values())
    rows = [
        ("triggers, threads", f"{storm.sent}, {threads}"),
        ("wakes of a thread, at most", str(most)),
        ("wakes in all", str(storm.wakes.total())),
        ("triggers that were not listed, or twice", f"{lost}, {doubled}"),
        (
            "taken in and told",
            Figure(name="", unit="/s", values=(storm.sent / storm.seconds,)).shown(),
        ),
    ]
    heading = f"P3 folding: {storm.sent} triggers on {threads} threads in 10 s"
    return Report(
        tables=[Table(heading=heading, columns=("what", ""), rows=rows, notes=NOTES)], plots=[]
    )


async def _storm(path: Path, threads: int, triggers: int) -> Storm:
    await asyncio.to_thread(schema.create, path)
    store = await asyncio.to_thread(Store.open, path)
    policy = Policy(rules=Rules(version="1", rules=DEFAULT_RULES), people=People(), routes=True)
    ids, storm, now_ms = SortableIds(SystemClock()), Storm(), 1_800_000_000_000
    try:
        await store.write(lambda c: _followed(Unit(c, now_ms - 60_000, ids.new), threads, policy))
        began = perf_counter()
        for first in range(0, triggers, BATCH):
            at_ms = now_ms + STORM_MS * first // triggers
            batch = [_news(n, n % threads) for n in range(first, min(first + BATCH, triggers))]
            await store.write(partial(_step, at_ms, ids, batch, policy=policy, storm=storm))
            storm.sent += len(batch)
        late_ms = now_ms + STORM_MS + QUIET.most_ms
        await store.write(lambda c: _turns(Unit(c, late_ms, ids.new), storm))
        storm.seconds = perf_counter() - began
    finally:
        await store.close()
    return storm


def _news(serial: int, thread: int) -> Trigger:
    return Trigger(
        kind="ci.failed",
        channel=Channel.CI,
        actor=SOMEBODY,
        content=Content(title="It broke", text=f"Run {serial}"),
        context=Context(thread=f"pr:{thread}"),
        dedupe=(f"run:{serial}",),
    )


def _followed(u: Unit, threads: int, policy: Policy) -> None:
    """Open a work item on each thread; their workers have read all and sleep."""
    router = sessions.ensure_router(u)
    for number in range(threads):
        first = Trigger(
            kind="asked",
            channel=Channel.CHAT,
            actor=Actor(id="ann"),
            content=Content(text="Watch it"),
            context=Context(thread=f"pr:{number}"),
            dedupe=(f"asked:{number}",),
        )
        (accepted,) = intake.accept(u, SOURCE, [first], policy)
        stored = intake.read(u.c, accepted.id)
        assert stored is not None
        opening = work.Opening(
            trigger=stored,
            goal="watch",
            criteria=("watched",),
            mandate=Mandate(given_by="ann", trust=Trust.STRANGER),
            taint=Trust.STRANGER,
        )
        work.open_item(u, opening, router)
    _turns(u, Storm())


def _step(
    at_ms: int,
    ids: SortableIds,
    batch: list[Trigger],
    c: Connection,
    *,
    policy: Policy,
    storm: Storm,
) -> None:
    u = Unit(c, at_ms, ids.new)
    _taken_in(u, batch, policy)
    _turns(u, storm)


def _taken_in(u: Unit, batch: list[Trigger], policy: Policy) -> None:
    """Take in what came together, each as a request of its own."""
    arrivals = [Arrival(source=SOURCE, triggers=[one]) for one in batch]
    found = intake.accept_each(u, arrivals, policy)
    assert all(isinstance(one, list) for one in found)


def _turns(u: Unit, storm: Storm) -> None:
    """Let each session that is ready take its inbox, and rest."""
    for claim in sessions.claim(u.c, u.now_ms, u.now_ms + 1_000, 1_000):
        unread = intake.unread(u.c, claim.session)
        intake.taken(u.c, claim.session, unread, 1)
        sessions.finish(u, claim, retry_at_ms=None, end=False)
        storm.wakes[claim.session] += 1
        storm.told.update(one.id for one in unread)
