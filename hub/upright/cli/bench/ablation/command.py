"""``upright bench p4``: the ablation, printed as tables or as one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Final, cast

import click

from upright.cli.bench.ablation.arms import FOLLOW_UPS, Grid
from upright.cli.bench.ablation.tables import lines, tables
from upright.cli.bench.ablation.whole import LONG_SEEDS, TASKS, Whole, longer, measure, twins
from upright.store.memory import Memory

SEEDS: Final = 20


@click.command()
@click.option("--seeds", type=click.IntRange(1, 1000), default=SEEDS, show_default=True)
@click.option("--tasks", type=click.IntRange(1, 500), default=TASKS, show_default=True)
@click.option(
    "--at",
    type=click.Choice([f"{one:g}" for one in FOLLOW_UPS]),
    multiple=True,
    help="Follow-ups a task; may come again (default: all of them).",
)
@click.option("--long", "is_long", is_flag=True, help="Longer traces, too.")
@click.option("--real", "is_real", is_flag=True, help="On the real clock, too: two minutes.")
@click.option("--json", "as_json", is_flag=True, help="Print every run as one JSON object.")
def p4(**given: object) -> None:
    """Run the same traces with and without pass-through, on virtual time, with a scripted model."""
    whole = _measured(given)
    if given["as_json"]:
        click.echo(json.dumps(whole.as_json()))
    else:
        for line in (line for table in tables(whole) for line in lines(table)):
            click.echo(line)
    for failure in whole.failures():
        click.echo(failure, err=True)
    if whole.failures():
        raise click.exceptions.Exit(1)


def _measured(given: Mapping[str, object]) -> Whole:
    shows, seeds = sys.stderr.isatty(), int(str(given["seeds"]))
    at = tuple(float(one) for one in cast("tuple[str, ...]", given["at"])) or FOLLOW_UPS
    grid = Grid(seeds=seeds, tasks=int(str(given["tasks"])), follow_ups=at)
    with Memory() as memory:
        return Whole(
            found=measure(grid, memory, shows=shows),
            lengths=longer(min(seeds, LONG_SEEDS), memory, shows=shows) if given["is_long"] else {},
            twins=twins(memory) if given["is_real"] else [],
        )
