"""``upright bench p5``: the prompt cache over a replayed day, as a table or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from upright.cli.bench.cache.day import Day, Plan, replay
from upright.store.memory import Memory

LEAST_SHARE: Final = 0.95


@click.command()
@click.option("--sessions", type=click.IntRange(1, 500), default=50, show_default=True)
@click.option("--triggers", type=click.IntRange(1, 20_000), default=1000, show_default=True)
@click.option("--hubs", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def p5(sessions: int, triggers: int, hubs: int, *, as_json: bool) -> None:
    """Replay a day of triggers over hubs that are killed; compare each prompt with the last."""
    with Memory() as memory:
        day = replay(Plan(sessions=sessions, triggers=triggers, hubs=hubs), memory)
    if as_json:
        click.echo(json.dumps(told(day)))
    else:
        for name, value in told(day).items():
            click.echo(f"{name:<32} {value}")
    for failure in failures(day):
        click.echo(failure, err=True)
    if failures(day):
        raise click.exceptions.Exit(1)


def told(day: Day) -> Mapping[str, Any]:
    """Return the figures by their names, in their order."""
    bills = day.bills
    return {
        "triggers": day.plan.triggers,
        "sessions": day.plan.sessions + 1,
        "hubs, each killed in mid-work": day.plan.hubs,
        "model calls": sum(bill.calls for bill in bills.values()),
        "compactions": day.compactions,
        "compactions a session, least": day.generations[0],
        "compactions a session, most": day.generations[1],
        "busts": day.busts,
        "reused of the reusable prefix": round(day.reused, 4),
        "cached of all prompt bytes": round(day.cached, 4),
        "prompt megabytes": round(sum(bill.prompt for bill in bills.values()) / 1e6, 1),
        "router calls": bills["router"].calls,
        "US dollars a routed trigger": round(day.usd_a_routed, 6),
        "US dollars of all compactions": round(bills["compaction"].usd_micros / 1e6, 4),
        "US dollars of the day": round(sum(bill.usd_micros for bill in bills.values()) / 1e6, 4),
        "triggers left untold": day.lost,
    }


def failures(day: Day) -> list[str]:
    """Say what makes the day a failure; nothing when all is well."""
    found = []
    if day.busts:
        found.append(f"FAILED: {day.busts} prompts did not begin with the one before them")
    if day.reused < LEAST_SHARE:
        found.append(f"FAILED: {day.reused:.3f} of the reusable prefix was reused")
    if day.lost:
        found.append(f"FAILED: {day.lost} triggers were told to nobody")
    return found
