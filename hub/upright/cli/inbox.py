"""``upright inbox`` and ``upright show``: what came in, and anything by its id."""

from __future__ import annotations

from typing import Any

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.cli.why import emit_why
from upright.engine.clock import SystemClock, now_ms


def _columns() -> tuple[render.Column, ...]:
    now = now_ms(SystemClock())
    return (
        ("ID", lambda row: row["id"]),
        ("AGE", lambda row: render.age(row["received_at_ms"], now)),
        ("WHAT BECAME OF IT", lambda row: render.state(row["disposition"])),
        ("SOURCE", lambda row: row["source"]),
        ("KIND", lambda row: row["kind"]),
        ("TITLE", lambda row: row["title"] or row["thread_title"]),
        ("REASON", lambda row: row["reason"]),
    )


@click.command()
@click.option("--limit", default=30, show_default=True, help="How many.")
@click.option("--disposition", help="Only these: ignored, joined, started, woke, held.")
@click.option("--why", "why_id", metavar="ID", help="Show this one's path instead.")
@click.option("--watch", is_flag=True, help="Go on with what comes in.")
@as_json
@pass_place
def inbox(
    place: Place,
    *,
    limit: int,
    disposition: str | None,
    why_id: str | None,
    watch: bool,
    as_json: bool,
) -> None:
    """List triggers, the newest last, and what became of each."""
    if why_id:
        emit_why(place.hub.get("v1", "why", why_id), as_json=as_json)
        return
    seq = place.hub.newest() if watch else 0
    rows = place.hub.get("v1", "inbox", limit=limit, disposition=disposition)[::-1]
    if as_json and not watch:
        render.emit_json(rows)
        return
    _emit(rows, as_json=as_json)
    if watch:
        _watch(place, seq, disposition, as_json=as_json)


def _emit(rows: list[dict[str, Any]], *, as_json: bool, titles: bool = True) -> None:
    if as_json:
        for row in rows:
            render.emit_line(row)
    else:
        render.emit_table(rows, _columns(), empty="Nothing came in yet.", titles=titles)


def _watch(place: Place, seq: int, disposition: str | None, *, as_json: bool) -> None:
    """Print what comes in after event *seq*."""
    for event in place.hub.events(seq):
        if event.stop == "intake.accepted":
            row = place.hub.get("v1", "triggers", event.data["trigger_id"])
            if disposition in {None, row["disposition"]}:
                _emit([_as_listed(row)], as_json=as_json, titles=False)


def _as_listed(row: dict[str, Any]) -> dict[str, Any]:
    """Make a trigger that was read alone look like one of the list."""
    body, thread = row.pop("body"), row.pop("thread")
    return {**row, "title": body["content"]["title"], "thread_title": thread["title"]}


@click.command()
@click.argument("wanted", metavar="ID")
@click.option("--part", default="", help="One of its parts: raw, stdout, generation:0 …")
@click.option("--offset", default=0, help="Read on from here, as a page before said.")
@as_json
@pass_place
def show(place: Place, wanted: str, *, part: str, offset: int, as_json: bool) -> None:
    """Show whatever has this ID; any unique beginning will do."""
    found = place.hub.get("v1", "show", wanted, part=part or None, offset=offset or None)
    if as_json:
        render.emit_json(found)
        return
    if part or offset:
        render.emit_fields(found["shown"])
        return
    click.echo(click.style(found["kind"], bold=True))
    render.emit_fields(found["it"])
