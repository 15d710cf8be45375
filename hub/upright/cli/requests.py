"""``upright requests``, ``answer``, ``approve`` and ``deny``: what only a person can settle."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def requests() -> None:
    """List what you are asked."""


@requests.command()
@click.option("--all", "everything", is_flag=True, help="With what is settled.")
@as_json
@pass_place
def ls(place: Place, everything: bool, as_json: bool) -> None:
    """List questions and approvals, the oldest first."""
    rows = place.hub.get("v1", "requests", all=1 if everything else None)
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("KIND", lambda row: row["kind"]),
        ("STATE", lambda row: render.state(row["state"])),
        ("AGE", lambda row: render.age(row["created_at_ms"], now)),
        ("WORK", lambda row: row["work_id"]),
        ("WHAT", lambda row: row["prompt"]),
    )
    render.emit_table(rows, columns, empty="Nobody waits for you.")


@click.command()
@click.argument("wanted", metavar="ID")
@click.argument("text")
@as_json
@pass_place
def answer(place: Place, wanted: str, text: str, as_json: bool) -> None:
    """Answer the question ID with TEXT; the first answer counts."""
    done = place.hub.post("v1", "requests", wanted, "answer", text=text)
    _done(done, f"Answered {wanted}.", as_json=as_json)


@click.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def approve(place: Place, wanted: str, as_json: bool) -> None:
    """Approve exactly what was asked under ID."""
    _done(
        place.hub.post("v1", "requests", wanted, "approve"), f"Approved {wanted}.", as_json=as_json
    )


@click.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def deny(place: Place, wanted: str, as_json: bool) -> None:
    """Deny what was asked under ID."""
    _done(place.hub.post("v1", "requests", wanted, "deny"), f"Denied {wanted}.", as_json=as_json)


def _done(done: object, said: str, *, as_json: bool) -> None:
    if as_json:
        render.emit_json(done)
    else:
        click.echo(said)
