"""``upright source`` and ``upright cost``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def source() -> None:
    """List sources; try one again."""


@source.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List sources: state, why, and when each was last heard."""
    rows = place.hub.get("v1", "sources")
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("NAME", lambda row: row["name"]),
        ("KIND", lambda row: row["kind"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("HEARD", lambda row: render.age(_heard_ms(row), now)),
        ("WEBHOOKS GO TO", lambda row: f"{place.url()}/hooks/{row['name']}"),
        ("REASON", lambda row: row["reason"] or row["gap"]),
    )
    empty = f"No source yet; name one in {place.settings.file}: [sources.NAME] connector = …"
    render.emit_table(rows, columns, empty=empty)


def _heard_ms(row: Mapping[str, Any]) -> int | None:
    """Return when the source was last heard, by a trigger or a mere sign of life."""
    return max(filter(None, (row["heard_at_ms"], row["alive_at_ms"])), default=None)


@source.command()
@click.argument("name")
@as_json
@pass_place
def retry(place: Place, name: str, as_json: bool) -> None:
    """Try a source again now, after its credentials were renewed, say."""
    done = place.hub.post("v1", "sources", name, "retry")
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"{name} is being tried; see: upright source ls")


@click.command()
@as_json
@pass_place
def cost(place: Place, as_json: bool) -> None:
    """Add up what everything cost."""
    found = place.hub.get("v1", "costs")
    if as_json:
        render.emit_json(found)
        return
    click.echo(f"in all: {render.money(found['total'])}")
    for title, key in (("by_model", "model"), ("by_work", "work_id")):
        for row in found[title]:
            click.echo(f"{render.safe(row[key])}: {render.money(row)}")
