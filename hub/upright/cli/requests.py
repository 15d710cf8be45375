"""``upright requests`` and the words for them: what only a person can settle."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO, Any

import click

from upright.cli import render
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.core.material import visible
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
        ("TAINT", lambda row: row["trust"]),
        ("ROUTE", lambda row: "no_route" if row["no_route"] else ""),
        ("WHAT", lambda row: row["prompt"]),
    )
    render.emit_table(rows, columns, empty="Nobody waits for you.")
    for why in sorted({row["no_route"] for row in rows if row["no_route"]}):
        click.echo(f"no_route: {why}", err=True)


@requests.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def show(place: Place, wanted: str, as_json: bool) -> None:
    """Show exactly what ID asks: the effect, its cause, and what tainted it."""
    row = place.hub.get("v1", "requests", wanted)
    if as_json:
        render.emit_json(row)
        return
    _print(row)


def _print(row: dict[str, Any], *, err: bool = False) -> None:
    """Print one request; what hides, or would steer the terminal, stands there as an escape."""
    for line in _told(row):
        click.echo(render.safe(visible(line), lines=True), err=err)


def _told(row: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of one request; of an effect first where it goes, its text last."""
    yield f"{row['id']}  {row['kind']}, {row['state']}"
    if row["no_route"]:
        yield f"no_route: {row['no_route']}"
    effect = row["effect"]
    if effect is not None:
        to = json.dumps(effect["destination"], ensure_ascii=True)
        yield f"sends {effect['id']} ({effect['class']}) to {to}"
        yield f"digest {effect['digest']}"
        for edit in effect["edits"]:
            yield f"edited by {edit['by']}; it was {edit['was_digest']}"
    yield from (f"cause   {_of(one)}" for one in row["cause"])
    if row["trust"] not in {None, "operator"}:
        yield f"after reading {row['trust']} text"
    yield from (f"taint   {_of(one)}" for one in row["tainted_by"])
    if row["can"]:
        yield "now: " + ", ".join(f"upright {word} {row['id']}" for word in row["can"])
    yield ""
    yield effect["text"] if effect is not None else row["prompt"]


def _of(one: dict[str, Any]) -> str:
    if "kind" not in one:
        return str(one["id"])
    said = json.dumps(f"{one['by']}: {one['title']}", ensure_ascii=True)
    return f"{one['id']} {one['kind']} by {one['actor_kind']} {said}"


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
@click.option("--digest", metavar="D", help="What you looked at: 8 or more of its digest's digits.")
@click.option("--yes", is_flag=True, help="Approve what is shown now, without being asked.")
@as_json
@pass_place
def approve(place: Place, *, wanted: str, digest: str | None, yes: bool, as_json: bool) -> None:
    """Show exactly what ID would send, and approve that."""
    row = place.hub.get("v1", "requests", wanted)
    if row["effect"] is not None and "approve" in row["can"]:
        _print(row, err=as_json)
        if digest is None and not yes:
            _confirm()
        digest = digest or row["effect"]["digest"]
    done = place.hub.post_with({"digest": digest}, "v1", "requests", wanted, "approve")
    _done(done, f"Approved {wanted}.", as_json=as_json)


def _confirm() -> None:
    """Let a person say that it is what they want; without one, refuse."""
    if not sys.stdin.isatty():
        said = "nobody is here to look at it; give --digest of what was looked at, or --yes"
        raise CliError(said, Exit.USAGE)
    click.confirm("Send exactly this?", abort=True, err=True)


@click.command()
@click.argument("wanted", metavar="ID")
@click.option("--text-file", type=click.File("r"), help="The new text; - is standard input.")
@as_json
@pass_place
def edit(place: Place, wanted: str, text_file: IO[str] | None, as_json: bool) -> None:
    """Change the text of the effect that ID asks about, and approve it so."""
    effect = place.hub.get("v1", "requests", wanted)["effect"]
    if effect is None:
        said = f"{wanted} asks about no effect that has a text"
        raise click.ClickException(said)
    text = text_file.read() if text_file else click.edit(effect["text"])
    if text is None:
        said = "nothing was saved: it is still asked"
        raise click.ClickException(said)
    done = place.hub.post("v1", "requests", wanted, "edit", text=text, digest=effect["digest"])
    _done(done, f"Approved {wanted} as you wrote it.", as_json=as_json)


@click.command()
@click.argument("wanted", metavar="ID")
@as_json
@pass_place
def ask_again(place: Place, wanted: str, as_json: bool) -> None:
    """Ask once more for what nobody approved in time under ID."""
    done = place.hub.post("v1", "requests", wanted, "ask-again")
    _done(done, f"Asked again: {done['request']}.", as_json=as_json)


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
