"""Siege: P9: kill -9 at random under load from eight clients, and everything else that fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.postgres import lacks
from bench.tables import Report, Table
from bench.world import World

SEED: Final = 400
RUNS: Final = 8
KILLS: Final = 30
WITHIN_S: Final = 7200.0
COLUMNS: Final = (
    *("mode", "database", "blows", "landed", "inside a turn", "acknowledged", "items", "effects"),
    *("unknown", "lost", "doubled", "stuck", "whole", "broken", "seconds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Runs of one mode, each with a database of its own and another seed."""

    mode: str
    kills: int
    runs: int = 1
    words: tuple[str, ...] = ()
    what: str = ""
    postgres: bool = False


WHOLE: Final = (
    Plan(mode="kill", kills=KILLS, runs=RUNS, what="kill -9 at random"),
    Plan(mode="kill", kills=KILLS, postgres=True, what="kill -9 at random"),
    Plan(mode="stop", kills=10, words=("--hold", "3"), what="SIGSTOP for 3 s, lease 1.2 s"),
    Plan(mode="stop", kills=4, postgres=True, what="SIGSTOP for 3 s, lease 1.2 s"),
    Plan(
        mode="stop",
        kills=1,
        words=("--hold", "30", "--lease", "10"),
        what="SIGSTOP for 30 s, lease 10 s",
    ),
    Plan(mode="full", kills=5, words=("--hold", "10"), what="disk full for 10 s"),
    Plan(mode="locked", kills=6, words=("--hold", "8"), what="database locked for 8 s"),
    Plan(mode="backend", kills=9, postgres=True, what="backends ended, every third by kill -9"),
)
NOTES: Final = (
    "Eight clients post signed webhooks, each with a synced log of what was answered.",
    "Workers wait for timers, threads, people and children, hand back, and blunder.",
    "Lost: an answered event that isn't stored, or that nobody took; a receipt without a comment.",
    "Doubled: an event that is stored twice, an effect that is visible twice.",
    "Stuck: work that nothing will wake, or that has not come to rest.",
    "Whole: how often the database was checked; after each kill before the next start.",
    "Broken: what it was not; the order on each thread included.",
    "Unknown: effects that the hub lists as such, for a person to look at.",
    f"Seeds from {SEED} on; a seed draws the same words again, not the same moments.",
)
QUICK: Final = (Plan(mode="kill", kills=3, what="kill -9 at random"),)


async def run(world: World) -> Report:
    """Lay siege in every mode; a run with any finding fails, and leaves no section."""
    told = [(plan, await _runs(world, plan)) for plan in world.pick(WHOLE, QUICK)]
    return report(told)


async def _runs(world: World, plan: Plan) -> list[dict[str, Any]]:
    if plan.postgres and (why := lacks()):
        return [{"skipped": why}]
    return [await _one(world, plan, SEED + number) for number in range(plan.runs)]


async def _one(world: World, plan: Plan, seed: int) -> dict[str, Any]:
    words = ["--mode", plan.mode, "--kills", str(plan.kills), "--seed", str(seed), *plan.words]
    if plan.postgres:
        words += ["--database-url", await asyncio.to_thread(world.postgres)]
    command = [sys.executable, "-m", "upright", "bench", "siege", "--json", *words]
    told: dict[str, Any] = await world.ask(command, within_s=WITHIN_S)
    print(f"siege {plan.mode} {seed}: {told}", flush=True)
    return told


def report(told: Sequence[tuple[Plan, Sequence[dict[str, Any]]]]) -> Report:
    """Write down what the runs printed, summed up by plan."""
    table = Table(
        heading="Siege: what fails around the hub, under load",
        columns=COLUMNS,
        rows=[_row(plan, runs) for plan, runs in told],
        notes=NOTES,
    )
    return Report(tables=[table])


def _row(plan: Plan, runs: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    skipped = next((one["skipped"] for one in runs if one["skipped"]), "")
    database = "PostgreSQL" if plan.postgres else "SQLite"
    if skipped:
        return (plan.what, database, f"skipped: {skipped}", *("-" for _ in COLUMNS[3:]))
    return (plan.what, database, *_sums(runs))


def _sums(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = (
        *("kills", "landed", "inside_turn", "acknowledged", "items", "effects", "unknown"),
        *("lost", "doubled", "stuck", "whole", "broken"),
    )
    for name in names:
        yield f"{sum(one[name] for one in runs):,}".replace(",", " ")
    yield f"{sum(one['seconds'] for one in runs):.0f}"
