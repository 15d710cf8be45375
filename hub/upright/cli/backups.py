"""``upright db backup`` and ``restore``: through the running hub, or on a database at rest."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from upright.cli import render
from upright.cli.client import UnreachableError
from upright.cli.database import database
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SortableIds, SystemClock, now_ms
from upright.store import backup as backups
from upright.store import hold, restoring, schema
from upright.store.backup import Manifest
from upright.store.guard import Guard
from upright.store.spill import Spill

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.command()
@_FILE
@as_json
@pass_place
def backup(place: Place, file: Path, as_json: bool) -> None:
    """Copy everything, as it is at one moment, into FILE; the hub may run meanwhile."""
    file = file.resolve()
    try:
        manifest = _from_the_hub(place, file)
    except UnreachableError:
        manifest = _at_rest(place, file)
    if as_json:
        render.emit_json({"file": str(file), "rows": dict(manifest.rows)})
    else:
        _tell(file, manifest)


def _from_the_hub(place: Place, file: Path) -> Manifest:
    """Fetch a backup, and check every byte before it takes the name."""
    with tempfile.TemporaryDirectory(prefix=".upright-", dir=file.parent) as folder:
        fresh = Path(folder) / file.name
        place.hub.download("v1", "backup", to=fresh)
        with backups.unpacked(fresh, Path(folder)) as found:
            manifest = found.manifest
        fresh.chmod(0o600)
        fresh.replace(file)
    return manifest


def _at_rest(place: Place, file: Path) -> Manifest:
    """Make a backup of a database that no hub has.

    Raises:
        StoreInUseError: one has it, although it does not answer.
    """
    where, at_ms = database(place), now_ms(SystemClock())
    schema.check(where)
    if not isinstance(where, Path):
        schema.on_server(where, lambda c: hold.take(c, where))
        return backups.write(where, None, file, at_ms=at_ms)
    with Guard(where.resolve()):
        return backups.write(where, Spill(place.home.spill), file, at_ms=at_ms)


def _tell(file: Path, manifest: Manifest) -> None:
    counted = {name: manifest.rows.get(name, 0) for name in ("trigger", "work", "session")}
    said = ", ".join(f"{count} {name}s" for name, count in counted.items())
    click.echo(f"{file}: {said.replace('works', 'work items')}, {len(manifest.spilled)} files.")
    click.echo("Not in it: upright.toml, hub.key and api.token. Keep those, too.")


@click.command()
@_FILE
@click.option("--replace", is_flag=True, help="Put it in the place of what is there.")
@as_json
@pass_place
def restore(place: Place, file: Path, replace: bool, as_json: bool) -> None:
    """Make FILE the database, whole or not at all; the hub must be stopped."""
    where = database(place)
    clock = SystemClock()
    said = restoring.restore(
        restoring.Restoring(
            file=file,
            where=where,
            spill=Spill(place.home.spill) if isinstance(where, Path) else None,
            replace=replace,
            now_ms=now_ms(clock),
            new_id=SortableIds(clock).new,
        )
    )
    if as_json:
        render.emit_json({"restored": str(where), "consequences": said})
        return
    click.echo(f"{where} is restored. What follows from that:")
    for sentence in said:
        click.echo(f"- {sentence}")
