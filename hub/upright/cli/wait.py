"""``upright wait``: what work waits for, until when, and what then; wake it, or take it away."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def wait() -> None:
    """List waits; wake what waits."""


@wait.command()
@click.option("--all", "everything", is_flag=True, help="With those that have ended.")
@as_json
@pass_place
def ls(place: Place, everything: bool, as_json: bool) -> None:
    """List waits, the next deadline first."""
    rows = place.hub.get("v1", "waits", all=1 if everything else None)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("FOR", lambda row: f"{row['kind']}: {row['why']}"),
        ("SINCE", lambda row: render.age(row["since_ms"], now)),
        ("UNTIL", lambda row: render.day(row["until_ms"])),
        ("THEN", lambda row: row["then"]),
        ("WORK", lambda row: row["work_id"]),
    )
    render.emit_table(rows, columns, empty="Nothing waits.")


@wait.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def wake(place: Place, wanted: str, as_json: bool) -> None:
    """Wake a worker as if what it waits for had come."""
    done = place.hub.post("v1", "waits", wanted, "wake")
    render.emit_done(done, f"Woken: {done['session']}.", as_json=as_json)


@wait.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def cancel(place: Place, wanted: str, as_json: bool) -> None:
    """Take a wait away; its worker is woken and decides anew."""
    done = place.hub.post("v1", "waits", wanted, "cancel")
    render.emit_done(done, f"Cancelled; {done['session']} decides anew.", as_json=as_json)
