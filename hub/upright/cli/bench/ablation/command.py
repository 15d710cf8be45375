"""``upright bench p4``: the ablation, printed as tables or as one JSON object."""

from __future__ import annotations

import json
import sys
from typing import Final

import click

from upright.cli.bench.ablation.arms import Grid
from upright.cli.bench.ablation.findings import Findings
from upright.cli.bench.ablation.play import play
from upright.cli.bench.ablation.tables import lines, tables
from upright.store.memory import Memory

SEEDS: Final = 20
TASKS: Final = 6


@click.command()
@click.option("--seeds", type=click.IntRange(1, 1000), default=SEEDS, show_default=True)
@click.option("--tasks", type=click.IntRange(1, 500), default=TASKS, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print every run as one JSON object.")
def p4(seeds: int, tasks: int, as_json: bool) -> None:
    """Run the same traces with and without pass-through, on virtual time, with a scripted model."""
    found = measure(Grid(seeds=seeds, tasks=tasks), shows=sys.stderr.isatty())
    if as_json:
        click.echo(json.dumps(found.as_json()))
    else:
        for line in (line for table in tables(found) for line in lines(table)):
            click.echo(line)
    for failure in found.failures():
        click.echo(failure, err=True)
    if found.failures():
        raise click.exceptions.Exit(1)


def measure(grid: Grid, *, shows: bool = False) -> Findings:
    """Run every cell of a grid; *shows* how far it is."""
    found, memory = Findings(), Memory()
    for cell in grid.cells():
        if shows:
            click.echo(f"\rseed {cell.seed} of {grid.seeds}", nl=False, err=True)
        found.add(cell, play(cell, grid.tasks, memory))
    if shows:
        click.echo(err=True)
    return found
