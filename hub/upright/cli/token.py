"""``upright token``: a person's own tokens for the API; each is shown once, and ends."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def token() -> None:
    """Make, list and revoke tokens."""


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "act", "admin", "exec"]),
    multiple=True,
    default=("read",),
    show_default=True,
    help="What it is for; may be given several times.",
)
@click.option("--days", type=click.IntRange(1), default=90, show_default=True, help="Its life.")
@as_json
@pass_place
def new(place: Place, *, name: str, scopes: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make a token called NAME; it is shown this once."""
    body = {"name": name, "scopes": " ".join(scopes), "days": str(days)}
    done = place.hub.post("v1", "tokens", **body)
    render.emit_done(done, done["token"], as_json=as_json)


@token.command()
@click.option("--all", "everybody", is_flag=True, help="Everybody's; for admins.")
@as_json
@pass_place
def ls(place: Place, *, everybody: bool, as_json: bool) -> None:
    """List tokens, the newest first."""
    rows = place.hub.get("v1", "tokens", all=1 if everybody else None)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("NAME", lambda row: row["name"]),
        ("SCOPES", lambda row: " ".join(row["scopes"])),
        ("STATE", lambda row: render.state(row["state"])),
        ("USED", lambda row: render.age(row["used_at_ms"], now)),
        ("ENDS", lambda row: render.day(row["ends_at_ms"])),
    )
    render.emit_table(rows, columns, empty="No token yet: upright token new NAME")


@token.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def revoke(place: Place, wanted: str, as_json: bool) -> None:
    """End the token ID at once."""
    done = place.hub.post("v1", "tokens", wanted, "revoke")
    render.emit_done(done, f"Revoked {wanted}.", as_json=as_json)
