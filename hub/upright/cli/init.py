"""``upright init``: a commented configuration, a database and keys; what is there stays."""

from __future__ import annotations

import click

from upright.cli.database import database
from upright.cli.place import Place, pass_place
from upright.cli.template import template
from upright.devices.identity import new_private_key
from upright.settings.home import make_private_folder, write_private
from upright.store import schema


@click.command()
@pass_place
def init(place: Place) -> None:
    """Write a commented upright.toml, a database and keys. What is there already stays."""
    for made in make_home(place):
        click.echo(f"made {made}")
    click.echo(f"The configuration is {place.settings.file}. Next: upright up")


def make_home(place: Place) -> list[str]:
    """Make what is missing; return what was made.

    Raises:
        RevisionError: there is a database of another version.
        StoreUnavailableError: the database's server can't be reached.
    """
    made: list[str] = []
    settings, home = place.settings, place.home
    if not settings.file.exists():
        make_private_folder(settings.file.parent)
        write_private(settings.file, template().encode())
        made.append(str(settings.file))
    make_private_folder(settings.state_dir)
    if home.read_token() is None:
        home.make_token()
        made.append(str(home.token))
    if not home.hub_key.exists():
        write_private(home.hub_key, new_private_key())
        made.append(str(home.hub_key))
    where = database(place)
    if schema.current(where) is None:
        schema.create(where)
        made.append(str(where))
    schema.check(where)
    return made
