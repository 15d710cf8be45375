"""``upright audit``: who did what, when, from where, and what came of it."""

from __future__ import annotations

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.engine.clock import SystemClock, now_ms

_HOUR_MS = 3_600_000


@click.command()
@click.option("--who", help="One person's deeds.")
@click.option("--action", help="Deeds whose name begins like this: requests, work.cancel.")
@click.option("--since", "hours", type=click.IntRange(1), help="The last so many hours.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@as_json
@pass_place
def audit(
    place: Place,
    *,
    who: str | None,
    action: str | None,
    hours: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """List what people did and were refused, the newest first."""
    since = now_ms(SystemClock()) - hours * _HOUR_MS if hours is not None else None
    rows = place.hub.get("v1", "audit", who=who, action=action, since=since, limit=limit)
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("AT", lambda row: render.day(row["at_ms"])),
        ("WHO", lambda row: row["who"]),
        ("VIA", lambda row: row["via"]),
        ("ACTION", lambda row: row["action"]),
        ("OBJECT", lambda row: row["object"]),
        ("OUTCOME", lambda row: render.state(row["outcome"])),
        ("FROM", lambda row: row["origin"]),
    )
    render.emit_table(rows, columns, empty="Nobody has done anything yet.")
