"""``upright budget`` and ``upright cost``: what was spent, and what may be (B16.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from upright.cli import render
from upright.cli.options import as_json
from upright.cli.place import Place, pass_place
from upright.core.budget import Measure, Scope, said_of
from upright.engine.clock import SystemClock, now_ms
from upright.settings.spending import UNITS

DAY_MS: Final = 24 * 3600 * 1000
FACETS: Final = ("source", "policy", "item", "session", "agent", "model", "day")
SCOPES: Final = tuple(scope.value for scope in Scope if scope is not Scope.TURN)
EACH: Final = "*"


@click.group()
def budget() -> None:
    """List, set and clear budgets: of the day, of sources, policies, agents and items."""


@budget.command()
@as_json
@pass_place
def ls(place: Place, as_json: bool) -> None:
    """List what is used of each budget; what a day renews is counted from 00:00 UTC."""
    rows = place.hub.get("v1", "budgets")
    if as_json:
        render.emit_json(rows)
        return
    columns: tuple[render.Column, ...] = (
        ("SCOPE", lambda row: row["scope"]),
        ("NAME", lambda row: row["name"] or "-"),
        ("USED", lambda row: said_of(Measure(row["measure"]), row["used"])),
        ("OF", lambda row: said_of(Measure(row["measure"]), row["cap"])),
        ("%", lambda row: f"{row['percent']:g}"),
        ("LEVEL", lambda row: render.state(row["level"])),
        ("NOTE", _note),
    )
    empty = "No budget; set one: upright budget set day --usd 10"
    render.emit_table(rows, columns, empty=empty)


def _note(row: render.Row) -> str:
    notes = []
    if row["extra"]:
        notes.append(f"granted {row['extra']} times more")
    if row["unpriced"] and row["measure"] == Measure.USD_MICROS:
        notes.append(f"{row['unpriced']} calls have no price and aren't counted")
    return "; ".join(notes)


@budget.command(name="set")
@click.argument("scope", type=click.Choice(SCOPES))
@click.argument("name", default=EACH)
@click.option("--tokens", type=click.IntRange(0), help="Tokens, in and out; 0: no bound.")
@click.option("--usd", type=click.FloatRange(0), help="Dollars; unpriced calls aren't counted.")
@click.option("--steps", type=click.IntRange(0), help="Model calls.")
@click.option("--seconds", type=click.IntRange(0), help="Seconds of model calls and jobs.")
@click.option("--retries", type=click.IntRange(0), help="Requests that gave nothing.")
@click.option("--repeats", type=click.IntRange(0), help="Tool calls that were made before.")
@as_json
@pass_place
def put(place: Place, /, scope: str, name: str, as_json: bool, **amounts: float | None) -> None:
    """Set a budget: of the day, or of one source, policy, agent or item; without NAME of each.

    Work that it held goes on at once, if there is room now.
    """
    given = {unit: amount for unit, amount in amounts.items() if amount is not None}
    if not given:
        message = "say how much: --tokens, --usd, --steps, --seconds, --retries or --repeats"
        raise click.UsageError(message)
    done = []
    for unit, amount in given.items():
        measure, size = UNITS[unit]
        whole = str(round(amount * size))
        body = {"scope": scope, "name": name, "measure": measure.value, "amount": whole}
        done.append(place.hub.post("v1", "budgets", **body))
    render.emit_done(done, f"Set the budget of {_whose(scope, name)}.", as_json=as_json)


@budget.command()
@click.argument("scope", type=click.Choice(SCOPES))
@click.argument("name", default=EACH)
@as_json
@pass_place
def clear(place: Place, scope: str, name: str, as_json: bool) -> None:
    """Take away what `budget set` has set: the configuration's [budgets] hold again."""
    done = place.hub.post("v1", "budgets", "clear", scope=scope, name=name)
    render.emit_done(done, f"Cleared the budget of {_whose(scope, name)}.", as_json=as_json)


def _whose(scope: str, name: str) -> str:
    if name != EACH:
        return f"the {scope} {name}"
    return "the day" if scope == Scope.DAY else f"each {scope}"


@click.command()
@click.option("--by", "facet", type=click.Choice(FACETS), help="Add up by this.")
@click.option("--days", type=click.IntRange(1), help="Only the last so many days.")
@click.option("--forecast", metavar="SOURCE", help="What a source will cost, by its last week.")
@as_json
@pass_place
def cost(
    place: Place, facet: str | None, days: int | None, *, forecast: str | None, as_json: bool
) -> None:
    """Add up what everything cost; retries and side calls are counted in."""
    if forecast is not None:
        _forecast(place, forecast, as_json=as_json)
        return
    since = None if days is None else now_ms(SystemClock()) - days * DAY_MS
    if facet is not None:
        _by(place, facet, since, as_json=as_json)
        return
    found = place.hub.get("v1", "costs", since=since)
    if as_json:
        render.emit_json(found)
        return
    click.echo(f"in all: {render.money(found['total'])}")
    for title, key in (("by_model", "model"), ("by_work", "work_id")):
        for row in found[title]:
            click.echo(f"{render.safe(row[key])}: {render.money(row)}")


def _by(place: Place, facet: str, since: int | None, *, as_json: bool) -> None:
    found = place.hub.get("v1", "costs", "by", by=facet, since=since)
    if as_json:
        render.emit_json(found)
        return
    columns: tuple[render.Column, ...] = (
        (facet.upper(), lambda row: row["name"] or "-"),
        ("CALLS", lambda row: f"{row['calls']:,}"),
        ("BESIDE", lambda row: f"{row['beside']:,}"),
        ("RETRIES", lambda row: f"{row['retries']:,}"),
        ("IN", lambda row: f"{row['tokens_input']:,}"),
        ("CACHED", lambda row: f"{row['tokens_cached']:,}"),
        ("OUT", lambda row: f"{row['tokens_output']:,}"),
        ("COST", _dollars),
        ("SECONDS", lambda row: f"{row['seconds']:,.0f}"),
    )
    render.emit_table(found["rows"], columns, empty="Nothing was spent yet.")


def _dollars(row: render.Row) -> str:
    micros, unpriced = row["usd_micros"], row["unpriced"]
    if micros is None:
        return "price unknown" if row["calls"] else "-"
    return f"${micros / 1e6:.4f}" + (f" + {unpriced} unpriced" if unpriced else "")


def _forecast(place: Place, source: str, *, as_json: bool) -> None:
    found: Mapping[str, Any] = place.hub.get("v1", "costs", "forecast", source=source)
    if as_json:
        render.emit_json(found)
        return
    if not found["days"]:
        click.echo(f"{render.safe(source)} has no whole day behind it yet: nothing to go by.")
    else:
        click.echo(f"{render.safe(source)}, by its last {found['days']} whole days (UTC)")
        for title, key in (("a day", "a_day"), ("the dearest day", "most"), ("a month", "month")):
            click.echo(f"  {title}: {_sums(found[key])}")
    click.echo(f"  today: {render.money(found['today'])}")


def _sums(row: Mapping[str, int]) -> str:
    tokens = f"{row['tokens_input']:,} in ({row['tokens_cached']:,} cached)"
    money = f"${row['usd_micros'] / 1e6:.2f}"
    return f"{row['calls']:,} calls, {tokens}, {row['tokens_output']:,} out, {money}"
