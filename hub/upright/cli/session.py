"""``upright session``: transcripts, live or not, and a word to whoever works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.cli.words import ask, interrupt
from upright.engine.clock import SystemClock, now_ms

BATCH: Final = 200
_COLOURS: Final = {"system": "magenta", "user": "blue", "assistant": "green", "tool": "yellow"}


@click.group()
def session() -> None:
    """Read transcripts; say something to a session."""


@session.command()
@click.option("--live", is_flag=True, help="Only those that have not ended.")
@as_json
@pass_place
def ls(place: Place, live: bool, as_json: bool) -> None:
    """List sessions, the newest first."""
    rows = place.hub.get("v1", "sessions", live=1 if live else None)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("KIND", lambda row: row["kind"]),
        ("STATUS", lambda row: render.state(row["status"])),
        ("AGE", lambda row: render.age(row["created_at_ms"], now)),
        ("WORK", lambda row: row["work_id"]),
        ("GOAL", lambda row: row["goal"]),
    )
    render.emit_table(rows, columns, empty="No session yet.")


@session.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def show(place: Place, wanted: str, as_json: bool) -> None:
    """Show a session: what it follows, what waits in its inbox, its turns, its cost."""
    it: dict[str, Any] = place.hub.get("v1", "sessions", wanted)
    if as_json:
        render.emit_json(it)
        return
    spent = it.pop("costs")
    render.emit_fields(it)
    click.echo(f"cost: {render.money(spent)}")


@session.command()
@click.argument("wanted", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is said.")
@click.option("--entries", default=20, show_default=True, help="How many of the last.")
@as_json
@pass_place
def tail(place: Place, *, wanted: str, follow: bool, entries: int, as_json: bool) -> None:
    """Print the end of a transcript."""
    seq = place.hub.newest() if follow else 0
    it = place.hub.get("v1", "sessions", wanted)
    whole, after = it["id"], it["entries"] - 1 - entries
    for entry in _new(place, whole, max(after, -1)):
        _emit(entry, as_json=as_json)
        after = entry["n"]
    if not follow:
        return
    for event in place.hub.events(seq):
        if event.data.get("session_id") == whole:
            for entry in _new(place, whole, after):
                _emit(entry, as_json=as_json)
                after = entry["n"]


@session.command()
@click.argument("wanted", metavar="ID")
@click.argument("text")
@as_json
@pass_place
def say(place: Place, wanted: str, text: str, as_json: bool) -> None:
    """Tell a session something, as the operator."""
    done = place.hub.post("v1", "sessions", wanted, "say", text=text)
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"Said. Follow the answer: upright session tail -f {wanted}")


session.add_command(interrupt)
session.add_command(ask)


@session.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def stop(place: Place, wanted: str, as_json: bool) -> None:
    """Stop a session for good: its item is cancelled, its jobs are stopped."""
    done = place.hub.post("v1", "sessions", wanted, "stop")
    render.emit_done(done, f"Stopped {done['session']}.", as_json=as_json)


def _new(place: Place, whole: str, after: int) -> Iterator[Mapping[str, Any]]:
    """Yield the entries behind number *after*, all of them, a batch at a time."""
    while True:
        given = None if after < 0 else after
        batch = place.hub.get("v1", "sessions", whole, "entries", after=given, limit=BATCH)
        yield from batch
        if len(batch) < BATCH:
            return
        after = batch[-1]["n"]


def _emit(entry: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        render.emit_line(entry)
        return
    message = entry["message"]
    role = message["role"]
    head = f"#{entry['n']} {render.clock(entry['at_ms'])} {role}"
    click.echo(click.style(head, fg=_COLOURS.get(role), bold=True))
    if message["text"]:
        click.echo(render.safe(message["text"], lines=True))
    for call in message["calls"]:
        click.echo(f"→ {render.safe(call['name'])} {render.safe(call['arguments'])}")
