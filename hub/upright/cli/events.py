"""``upright events``: what happens, as it happens; and stored triggers by today's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from upright.cli import render
from upright.cli.errors import CliError, Exit
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms

BATCH: Final = 200
_UNITS_S: Final = {"m": 60, "h": 3600, "d": 86_400}
_ABOUT: Final = ("trigger_id", "session_id", "work_id", "turn_id", "job_id", "outbox_id")


@click.group()
def events() -> None:
    """Follow what happens; judge stored triggers anew."""


@events.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens.")
@click.option("--after", type=int, help="Go on behind this number.")
@click.option("--limit", default=30, show_default=True, help="How many of the last.")
@as_json
@pass_place
def tail(place: Place, *, follow: bool, after: int | None, limit: int, as_json: bool) -> None:
    """Print the stream of events; with --follow it is taken up again behind the last number."""
    last = after if after is not None else max(place.hub.newest() - limit, 0)
    for event in _stored(place, last):
        _emit(event, as_json=as_json)
        last = event["seq"]
    if follow:
        for happened in place.hub.events(last):
            _emit(happened.data, as_json=as_json)


def _stored(place: Place, after: int) -> Iterator[Mapping[str, Any]]:
    while batch := place.hub.get("v1", "events", "list", after=after, limit=BATCH):
        yield from batch
        after = batch[-1]["seq"]


def _emit(event: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        render.emit_line(event)
        return
    about = " ".join(str(event[key]) for key in _ABOUT if event.get(key))
    said = " ".join(f"{key}={value}" for key, value in event.get("data", {}).items())
    line = f"{event['seq']} {render.clock(event['at_ms'])} {event['stop']} {about} {said}"
    click.echo(render.safe(line.rstrip()))


@events.command()
@click.argument("wanted", metavar="[ID]", required=False)
@click.option("--since", metavar="AGE", help="Those that came in this time: 90m, 12h, 7d.")
@click.option("--all", "show_all", is_flag=True, help="Show what would not change, too.")
@click.option("--again", is_flag=True, help="Offer the held trigger ID to the router, in earnest.")
@as_json
@pass_place
def replay(
    place: Place,
    *,
    wanted: str | None,
    since: str | None,
    show_all: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Say what today's rules would make of stored triggers; nothing is changed, but by --again."""
    if again:
        if not wanted:
            said = "--again needs the ID of one held trigger"
            raise CliError(said, Exit.USAGE)
        done = place.hub.post("v1", "triggers", wanted, "again")
        if as_json:
            render.emit_json(done)
        else:
            click.echo(f"Offered to {done['offered_to']}. Follow it: upright why {wanted}")
        return
    if not wanted and not since:
        said = "say which: the ID of a trigger, or --since 7d"
        raise CliError(said, Exit.USAGE)
    since_ms = now_ms(SystemClock()) - _age_ms(since) if since else None
    found = place.hub.get("v1", "replay", trigger=wanted, since=since_ms)
    _show(found, show_all=show_all or bool(wanted), as_json=as_json)


def _age_ms(text: str) -> int:
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.isascii() or not number.isdigit():
        said = f"{text!r} is no age; write 90m, 12h or 7d"
        raise CliError(said, Exit.USAGE)
    return int(number) * _UNITS_S[unit] * 1000


def _show(found: list[dict[str, Any]], *, show_all: bool, as_json: bool) -> None:
    changed = [row for row in found if row["changes"]]
    shown = found if show_all else changed
    if as_json:
        render.emit_json(shown)
        return
    now = now_ms(SystemClock())
    columns: tuple[render.Column, ...] = (
        ("ID", lambda row: row["id"]),
        ("AGE", lambda row: render.age(row["received_at_ms"], now)),
        ("KIND", lambda row: row["kind"]),
        ("WAS", lambda row: f"{row['verdict']} ({row['rule']})"),
        ("WOULD BE", lambda row: f"{row['now_verdict']} ({row['now_rule']})"),
        ("TITLE", lambda row: row["title"]),
    )
    render.emit_table(shown, columns, empty="Nothing would change.")
    click.echo(f"{len(found)} judged anew, {len(changed)} would change; nothing was changed.")
