"""P5, the prompt cache: a day replayed over hubs that are killed, each prompt beside the last.

``upright bench p5`` in a process of its own; here its JSON becomes a table.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from bench.tables import Report, Table
from bench.world import World

NOTES: Final = (
    "virtual time, a database in memory, the hub's own intake, routing, turns and prompts",
    "the model is scripted, and decides from the last message alone",
    "a bust: a prompt that lacks the one before it in its generation, over kills and hubs",
    "the reusable prefix of a prompt is the one before it, of its session and generation",
    "of all bytes, first prompts and the beginnings of generations count against the share",
    "dollars: gpt-5-mini for the router, gpt-5 for workers, at the price table's date",
    "goal: busts 0, at least 0.95 of the reusable prefix",
)


async def run(world: World) -> Report:
    """Run it, and look that nothing makes it worthless."""
    command = [sys.executable, "-m", "upright", "bench", "p5", "--json"]
    small = ["--sessions", "2", "--triggers", "20", "--hubs", "2"]
    found: dict[str, Any] = await world.ask([*command, *world.pick([], small)], within_s=500)
    rows = [[name, f"{value}"] for name, value in found.items()]
    heading = "P5 prompt cache: a replayed day"
    return Report(tables=[Table(heading=heading, columns=["what", "ours"], rows=rows, notes=NOTES)])
