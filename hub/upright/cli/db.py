"""``upright db``: the database's revision; the hub must be stopped to change it."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.store import schema


@click.group()
def db() -> None:
    """Check and migrate the database."""


@db.command()
@as_json
@pass_place
def check(place: Place, as_json: bool) -> None:
    """Say whether the database is what this program needs."""
    path = place.settings.database_path
    found, wanted = schema.current(path), schema.head()
    if as_json:
        render.emit_json({"path": str(path), "revision": found, "wanted": wanted})
    if found is None:
        said = f"there is no database at {path}; run: upright init"
        raise CliError(said, Exit.NOT_FOUND)
    schema.check(path)
    if not as_json:
        click.echo(f"{path} is at revision {found}, as it should be.")


@db.command()
@pass_place
def migrate(place: Place) -> None:
    """Bring the database to this program's revision, whole or not at all."""
    path = place.settings.database_path
    before, after = schema.migrate(path)
    if before == after:
        click.echo(f"{path} was at revision {after} already.")
    else:
        click.echo(f"{path} went from revision {before} to {after}.")
