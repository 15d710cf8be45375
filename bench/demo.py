"""Demo: the figures of the whole path, from a signed webhook to a completed work item."""

from __future__ import annotations

import sys
from typing import Any, Final

from bench.tables import Figure, Report, Table
from bench.world import World

DEMO_S: Final = 120.0
FIGURES: Final = (
    ("webhook to the first model byte", "webhook_to_first_model_byte_s", "ms"),
    ("webhook to the worker's first model byte", "webhook_to_worker_model_byte_s", "ms"),
    ("the quickest command, row to row", "quickest_command_s", "ms"),
    ("set-up", "set_up_s", "s"),
    ("the whole demo", "whole_s", "s"),
)


async def run(world: World) -> Report:
    """Run the demo with some seeds; each run must pass its own checks."""
    results: list[dict[str, Any]] = []
    for seed in range(world.pick(5, 1)):
        argv = [sys.executable, "-m", "upright", "demo", "--json", "--seed", str(seed)]
        results.append(await world.ask(argv, within_s=DEMO_S))
    rows = []
    for what, key, unit in FIGURES:
        factor = 1000 if unit == "ms" else 1
        values = tuple(factor * result["figures"][key] for result in results)
        rows.append((what, Figure(name=what, unit=unit, values=values).shown()))
    heading = f"The demo, {len(results)} seeds"
    return Report(tables=[Table(heading=heading, columns=("what", "median (range)"), rows=rows)])
