"""Kill: the long run of `upright bench kill`: what is lost, doubled or stuck after kill -9."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from bench.tables import Report, Table
from bench.world import World

KILLS: Final = 260
SEED: Final = 100
WITHIN_S: Final = 3600.0
SIDES: Final = ("before", "after", "during")
SUMS: Final = (
    ("kills that landed", "landed"),
    ("of them inside a turn", "inside_turn"),
    ("of them between the receipt of a webhook and its answer", "between_receipt_and_answer"),
    ("webhooks that were acknowledged", "acknowledged"),
    ("lost", "lost"),
    ("doubled", "doubled"),
    ("stuck", "stuck"),
    ("stories (red check to completed item)", "stories"),
    ("seconds", "seconds"),
)


async def run(world: World) -> Report:
    """Kill until so many have landed; a run with any finding fails, and leaves no section."""
    kills = str(world.pick(KILLS, 6))
    words = ("upright", "bench", "kill", "--kills", kills, "--seed", str(SEED), "--json")
    return report(await world.ask([sys.executable, "-m", *words], within_s=WITHIN_S))


def report(told: dict[str, Any]) -> Report:
    """Write down what the command printed."""
    sums = [(what, f"{told[key]:,}".replace(",", " ")) for what, key in SUMS]
    heading = f"Kill: {told['kills']} times kill -9, seed {told['seed']}"
    notes = (
        "Lost: an answered webhook that isn't in the store, a story without commit or comment.",
        "What was answered, the client knows by its own synced log.",
        "Doubled: a webhook stored twice, a second commit or comment, a command that ran twice.",
        "Stuck: a story that did not end, or work that nothing will wake.",
    )
    return Report(
        tables=[
            Table(heading=heading, columns=("what", "count"), rows=sums, notes=notes),
            Table(
                heading="Kill: where they landed (before: inside the transaction; after: between "
                "the commit and its answer)",
                columns=("victim", "stop", *SIDES),
                rows=list(_rows(told["by_stop"])),
            ),
        ]
    )


def _rows(by_stop: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for victim, stops in by_stop.items():
        for stop, sides in stops.items():
            yield victim, f"`{stop}`", *(str(sides.get(side, "-")) for side in SIDES)
