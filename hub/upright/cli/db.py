"""``upright db``: the database's revision, backups; the hub must be stopped to change it."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.backups import backup, restore
from upright.cli.database import database
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.store import schema


@click.group()
def db() -> None:
    """Check, migrate, back up and restore the database."""


db.add_command(backup)
db.add_command(restore)


@db.command()
@as_json
@pass_place
def check(place: Place, as_json: bool) -> None:
    """Say whether the database is what this program needs."""
    where = database(place)
    found, wanted = schema.current(where), schema.head()
    if as_json:
        render.emit_json({"path": str(where), "revision": found, "wanted": wanted})
    if found is None:
        said = f"there is no database at {where}; run: upright init"
        raise CliError(said, Exit.NOT_FOUND)
    schema.require(where, found)
    if not as_json:
        click.echo(f"{where} is at revision {found}, as it should be.")


@db.command()
@pass_place
def migrate(place: Place) -> None:
    """Bring the database to this program's revision, whole or not at all."""
    where = database(place)
    before, after = schema.migrate(where)
    if before == after:
        click.echo(f"{where} was at revision {after} already.")
    else:
        click.echo(f"{where} went from revision {before} to {after}.")
