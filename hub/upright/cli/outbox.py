"""``upright outbox``: what was said outside, what waits, and what never arrived."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms

STATES = ("held", "pending", "sending", "sent", "unknown", "expired", "dead")


@click.group()
def outbox() -> None:
    """List outward effects; send again what was not sent."""


@outbox.command()
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500))
@as_json
@pass_place
def ls(place: Place, state: str | None, limit: int, as_json: bool) -> None:
    """List effects, the newest first; a held one with what it waits for."""
    rows = place.hub.get("v1", "outbox", state=state, limit=limit)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("AGE", lambda row: render.age(row["created_at_ms"], now)),
        ("TRIES", lambda row: str(row["tries"])),
        ("SOURCE", lambda row: row["source"]),
        ("WHY", lambda row: row["request"] or row["receipt_url"] or row["reason"]),
        ("TEXT", lambda row: row["text"]),
    )
    render.emit_table(rows, columns, empty="Nothing here.")


@outbox.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def show(place: Place, wanted: str, as_json: bool) -> None:
    """Show an effect whole, with all that happened to it."""
    it = place.hub.get("v1", "outbox", wanted)
    if as_json:
        render.emit_json(it)
    else:
        render.emit_fields(it)


@outbox.command()
@click.argument("wanted", metavar="ID")
@click.option("--yes", is_flag=True, help="I have looked: send it although it may be visible.")
@as_json
@pass_place
def retry(place: Place, wanted: str, yes: bool, as_json: bool) -> None:
    """Send again what is dead, expired, or (with --yes) unknown."""
    done = place.hub.post_with({"yes": 1 if yes else None}, "v1", "outbox", wanted, "retry")
    render.emit_done(done, f"{wanted} goes out again.", as_json=as_json)


@outbox.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def discard(place: Place, wanted: str, as_json: bool) -> None:
    """Drop an effect that is held or pending."""
    done = place.hub.post("v1", "outbox", wanted, "discard")
    render.emit_done(done, f"{wanted} will not go out.", as_json=as_json)
