"""``upright device``: who may run commands for this hub."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from upright.cli import render
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def device() -> None:
    """Pair, list, share and revoke devices."""


@device.command()
@as_json
@pass_place
def pairings(place: Place, as_json: bool) -> None:
    """List the machines that ask to be paired."""
    rows = place.hub.get("v1", "pairings")
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("CODE", lambda row: row["code"]),
        ("DIGITS", lambda row: row["digits"]),
        ("HOST", lambda row: row["hostname"]),
        ("USER", lambda row: row["user"]),
        ("SYSTEM", lambda row: row["system"]),
        ("FROM", lambda row: row["remote"]),
        ("LEFT", lambda row: f"{row['expires_in_s']} s"),
    )
    render.emit_table(
        rows, columns, empty=f"No machine asks. On one, run: execd pair {place.url()}"
    )


@device.command()
@click.argument("code")
@click.option("--digits", help="The six digits that the machine shows; without, you compare them.")
@click.option("--yes", is_flag=True, help="You have compared the digits already.")
@as_json
@pass_place
def approve(place: Place, *, code: str, digits: str | None, yes: bool, as_json: bool) -> None:
    """Pair the machine that shows CODE, if the digits are the same on both sides."""
    shown = place.hub.get("v1", "pairings", code)
    if digits is None:
        if not yes:
            _compare(shown)
    elif "".join(digits.split()) != "".join(str(shown["digits"]).split()):
        said = "the digits differ: somebody stands between the two machines; nothing was approved"
        raise CliError(said, Exit.REFUSED)
    done = place.hub.post("v1", "pairings", code, "approve", bound_hash=shown["bound_hash"])
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"Paired {render.safe(shown['hostname'])} as {done['device']}.")


def _compare(shown: Mapping[str, Any]) -> None:
    """Let a person compare; without one, refuse."""
    if not sys.stdin.isatty():
        raise CliError("nobody is here to compare the digits; give --digits, or --yes", Exit.USAGE)
    for name in ("hostname", "user", "system", "remote", "host", "version"):
        click.echo(f"{name:>9}: {render.safe(shown[name])}")
    click.echo(f"{'may':>9}: {', '.join(render.safe(cap) for cap in shown['caps'])}")
    click.echo(f"{'digits':>9}: {click.style(shown['digits'], bold=True)}")
    click.confirm("Does that machine show the same digits?", abort=True)


@device.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List devices and their workspaces."""
    rows = place.hub.get("v1", "devices")
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("NAME", lambda row: row["name"]),
        ("STATE", lambda row: render.state(_state(row))),
        ("LINK", lambda row: render.state("online" if row["online"] else "offline")),
        ("SEEN", lambda row: render.age(row["seen_at_ms"], now)),
        ("OWNER", _owners),
        ("QUEUE", lambda row: f"{row['under_way']}+{row['queued']}"),
        ("WORKSPACES", lambda row: ", ".join(_room(room) for room in row["workspaces"])),
    )
    render.emit_table(rows, columns, empty=f"No device yet. On one, run: execd pair {place.url()}")


def _state(row: render.Row) -> str:
    return "clone suspected" if row["suspected_at_ms"] is not None else str(row["state"])


def _owners(row: render.Row) -> str:
    return ", ".join([row["owner"], *(f"+{person}" for person in row["shared_with"])])


def _room(room: render.Row) -> str:
    held = ", ".join(room["repositories"])
    return f"{room['path']} ({held})" if held else str(room["path"])


@device.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def show(place: Place, wanted: str, as_json: bool) -> None:
    """Show a device: whose it is, its queue, and commands that it holds and nobody here knows."""
    it: dict[str, Any] = place.hub.get("v1", "devices", wanted)
    if as_json:
        render.emit_json(it)
        return
    render.emit_fields({**it, "workspaces": [_room(room) for room in it["workspaces"]]})


@device.command()
@click.argument("wanted", metavar="ID")
@click.option("--with", "person", required=True, metavar="PERSON", help="A name; * is everybody.")
@as_json
@pass_place
def share(place: Place, wanted: str, person: str, as_json: bool) -> None:
    """Let a device run a person's items, too."""
    done = place.hub.post("v1", "devices", wanted, "share", person=person)
    render.emit_done(done, f"{done['device']} runs {person}'s items, too.", as_json=as_json)


@device.command()
@click.argument("wanted", metavar="ID")
@click.option("--with", "person", required=True, metavar="PERSON", help="As it was shared.")
@as_json
@pass_place
def unshare(place: Place, wanted: str, person: str, as_json: bool) -> None:
    """Run none of a person's items on a device any more."""
    done = place.hub.post("v1", "devices", wanted, "unshare", person=person)
    render.emit_done(done, f"{done['device']} runs none of {person}'s items.", as_json=as_json)


@device.command()
@click.argument("wanted", metavar="ID")
@click.argument("name")
@as_json
@pass_place
def rename(place: Place, wanted: str, name: str, as_json: bool) -> None:
    """Call a device NAME."""
    done = place.hub.post("v1", "devices", wanted, "rename", name=name)
    render.emit_done(done, f"{done['device']} is called {name}.", as_json=as_json)


@device.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def revoke(place: Place, wanted: str, as_json: bool) -> None:
    """Take a device's right away; its link is cut, its commands end."""
    done = place.hub.post("v1", "devices", wanted, "revoke")
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"Revoked {done['device']}.")
