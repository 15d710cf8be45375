"""``upright source``: list, add, test, switch and retry sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from upright.cli import render, source_edit
from upright.cli.errors import Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def source() -> None:
    """List, add, test, enable and disable sources."""


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
        ("REASON", _remark),
    )
    empty = f"No source yet; name one in {place.settings.file}: [sources.NAME] connector = …"
    render.emit_table(rows, columns, empty=empty)


def _heard_ms(row: Mapping[str, Any]) -> int | None:
    """Return when the source was last heard, by a trigger or a mere sign of life."""
    return max(filter(None, (row["heard_at_ms"], row["alive_at_ms"])), default=None)


def _remark(row: Mapping[str, Any]) -> str:
    """Say what a person should know of a source: why it does not work, or what is missing."""
    dead = row["dead"]
    lost = f"{dead['count']} dead letters, the last: {dead['last']}" if dead["count"] else ""
    return "; ".join(filter(None, (row["reason"], row["gap"], lost)))


@source.command()
@click.argument("name")
@click.argument("kind")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@pass_place
def add(place: Place, name: str, kind: str, pairs: tuple[str, ...]) -> None:
    """Add a source of a kind to the configuration, if its keys are right.

    Lists are written with commas; secrets are references: secret=keyring:NAME.
    """
    source_edit.add(place, name, kind, pairs)
    source_edit.told(f"Added {name}; its webhooks go to {place.url()}/hooks/{name}.")


@source.command()
@click.argument("name")
@pass_place
def enable(place: Place, name: str) -> None:
    """Enable a source in the configuration."""
    source_edit.switch(place, name, on=True)
    source_edit.told(f"{name} is enabled.")


@source.command()
@click.argument("name")
@pass_place
def disable(place: Place, name: str) -> None:
    """Disable a source in the configuration; it stays listed."""
    source_edit.switch(place, name, on=False)
    source_edit.told(f"{name} is disabled.")


@source.command()
@click.argument("name")
@as_json
@pass_place
def test(place: Place, name: str, as_json: bool) -> int:
    """Look live, through the running hub, whether a source could work; exits 1 when not."""
    probe = place.hub.post("v1", "sources", name, "test")
    if as_json:
        render.emit_json(probe)
    else:
        mark = click.style("✓", fg="green") if probe["ok"] else click.style("✗", fg="red")
        scopes = f" (may: {', '.join(probe['scopes'])})" if probe["scopes"] else ""
        click.echo(f"{mark} {name}: {render.safe(probe['summary'] + scopes)}")
    return Exit.OK if probe["ok"] else Exit.FAILED


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
