"""``upright stats``: how much happens a minute, what waits how long, and what sleeps for ever."""

from __future__ import annotations

from typing import Any

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place


@click.command()
@click.option(
    "--window", default=600, show_default=True, type=click.IntRange(1, 604_800), help="In seconds."
)
@as_json
@pass_place
def stats(place: Place, window: int, as_json: bool) -> None:
    """Say how the hub is doing, in figures."""
    it: dict[str, Any] = place.hub.get("v1", "stats", window=window)
    if as_json:
        render.emit_json(it)
        return
    rates = it["rates"]
    click.echo(f"a minute, over the last {it['window_s']} s")
    for name, rate in rates.pop("triggers").items():
        click.echo(f"  triggers {name}: {rate:g}")
    for name, rate in rates.items():
        click.echo(f"  {name.replace('_', ' ')}: {rate:g}")
    click.echo("the oldest of each queue")
    for name, age in it["ages_s"].items():
        said = "-" if age is None else f"{age:.0f} s"
        click.echo(f"  {name.replace('_', ' ')}: {said}")
    click.echo(f"leases held: {it['leases']}")
    for state, count in it["work"].items():
        click.echo(f"work {state}: {count}")
    for name, count in it["sizes"].items():
        click.echo(f"{name} ever: {count}")
    click.echo(f"stalled: {len(it['stalled'])}")
    for one in it["stalled"]:
        click.echo(f"  {one['id']} {one['state']}: {one['missing']}")
