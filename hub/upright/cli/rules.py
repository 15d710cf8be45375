"""``upright rules``: what judges triggers, as data with versions (B3.4)."""

from __future__ import annotations

import difflib
import tempfile
from pathlib import Path
from typing import Any

import click

from upright.cli import render
from upright.cli.client import AnsweredError
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms


@click.group()
def rules() -> None:
    """List, edit and compare the rules that judge triggers."""


@rules.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List the rules in their order, with how often each judged in the last 7 days."""
    found = place.hub.get("v1", "rules")
    if as_json:
        render.emit_json(found)
        return
    columns: tuple[render.Column, ...] = (
        ("HITS", lambda row: row["hits"]),
        ("VERDICT", lambda row: row["verdict"] + (", urgent" if row["urgent"] else "")),
        ("FROM", lambda row: "built in" if row["built_in"] else f"version {found['number']}"),
        ("NAME", lambda row: row["name"]),
    )
    render.emit_table(found["rules"], columns, empty="No rule.")


@rules.command()
@as_json
@pass_place
def history(place: Place, as_json: bool) -> None:
    """List the versions, the newest first."""
    rows = place.hub.get("v1", "rules", "history")
    if as_json:
        render.emit_json(rows)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("VERSION", lambda row: row["number"]),
        ("AGE", lambda row: render.age(row["at_ms"], now)),
        ("BY", lambda row: row["by"]),
        ("RULES", lambda row: row["text"].count("[[rules]]")),
    )
    render.emit_table(rows, columns, empty="No version yet.")


@rules.command()
@click.argument("old", type=int, required=False)
@click.argument("new", type=int, required=False)
@pass_place
def diff(place: Place, old: int | None, new: int | None) -> None:
    """Compare version OLD (the one before) with NEW (the one that holds)."""
    second = _version(place, new)
    first = _version(place, second["number"] - 1 if old is None else old)
    lines = difflib.unified_diff(
        first["text"].splitlines(),
        second["text"].splitlines(),
        f"version {first['number']} by {first['by']}",
        f"version {second['number']} by {second['by']}",
        lineterm="",
    )
    for line in lines:
        click.echo(render.safe(line))


def _version(place: Place, number: int | None) -> dict[str, Any]:
    if number is not None and number < 1:
        said = "there is no version before the first one"
        raise CliError(said, Exit.NOT_FOUND)
    found: dict[str, Any] = place.hub.get("v1", "rules", version=number)
    return found


@rules.command()
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Take the rules from here instead of opening an editor; - is standard input.",
)
@as_json
@pass_place
def edit(place: Place, file: Path | None, as_json: bool) -> None:
    """Edit the rules in $EDITOR; they hold from the next trigger on."""
    now = place.hub.get("v1", "rules")
    text = _read(file) if file else click.edit(now["text"], extension=".toml", require_save=True)
    if text is None or text == now["text"]:
        click.echo("Nothing changed.", err=True)
        return
    try:
        done = place.hub.post("v1", "rules", text=text, base=str(now["number"]))
    except AnsweredError as error:
        if file is None:
            click.echo(f"Your text is kept in {_kept(text)}", err=True)
        raise error from None
    if as_json:
        render.emit_json(done)
    else:
        click.echo(f"version {done['number']} holds, with {done['rules']} rules of your own")


def _read(file: Path) -> str:
    with click.open_file(str(file), encoding="utf-8") as opened:
        return str(opened.read())


def _kept(text: str) -> str:
    """Keep what somebody has typed; only its owner may read it."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="upright-rules-", suffix=".toml", delete=False
    ) as kept:
        kept.write(text)
    return kept.name
