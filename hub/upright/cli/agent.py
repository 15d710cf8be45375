"""``upright agent``: who there is, their homes, and making one (B17)."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place


@click.group()
def agent() -> None:
    """List, show and make agents; take in what was edited in their homes."""


@agent.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List agents by name: what each is for, and how much it has to do."""
    rows = place.hub.get("v1", "agents")
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("NAME", lambda row: row["name"]),
        ("OPEN", lambda row: str(row["open_items"])),
        ("SKILLS", lambda row: str(row["skills"])),
        ("NOTES", lambda row: str(row["notes"])),
        ("ROLE", lambda row: row["role"]),
    )
    render.emit_table(rows, columns, empty="No agents yet: upright agent new NAME --template …")


@agent.command()
@click.argument("name")
@as_json
@pass_place
def show(place: Place, name: str, as_json: bool) -> None:
    """Show an agent: its folder, files, skills with what they declare, and open items."""
    one = place.hub.get("v1", "agents", name)
    if as_json:
        render.emit_json(one)
        return
    click.echo(f"{one['name']}: {one['role']}\nhome: {one['folder']}\n")
    files: tuple[render.Column, ...] = (
        ("FILE", lambda row: row["path"]),
        ("VERSION", lambda row: str(row["version"])),
        ("BY", lambda row: row["by"]),
        ("TRUST", lambda row: row["trust"]),
        ("SHA256", lambda row: row["sha256"][:12]),
    )
    render.emit_table(one["files"], files, empty="The home is empty.")
    for skill in one["catalogue"]:
        declares = "".join(f"; {key}: {value}" for key, value in skill["declares"])
        click.echo(f"\n{skill['name']}: {skill['description']}{declares}")
    for item in one["items"]:
        click.echo(f"\n{item['id']} {item['state']}: {item['goal']}")


@agent.command()
@click.argument("name")
@click.option("--template", help="What its home begins with (default: the name itself).")
@as_json
@pass_place
def new(place: Place, name: str, template: str | None, as_json: bool) -> None:
    """Make an agent; its home is a folder that you may edit."""
    done = place.hub.post("v1", "agents", name=name, template=template or name)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"{name} is there; its home: {done['folder']}")


@agent.command()
@as_json
@pass_place
def sync(place: Place, as_json: bool) -> None:
    """Take in what you edited in the homes' folders; say what was refused or in conflict."""
    rows = place.hub.post("v1", "agents", "sync")
    if as_json:
        render.emit_json(rows)
        return
    said = False
    for one in rows:
        for word in ("taken_in", "laid_out", "forgotten", "removed", "conflicts"):
            for path in one[word]:
                said = True
                click.echo(f"{one['agent']}/{path}: {word.replace('_', ' ')}")
        for path, why in one["refused"].items():
            said = True
            click.echo(f"{one['agent']}/{path}: refused: {why}")
    if not said:
        click.echo("Nothing has changed.")
