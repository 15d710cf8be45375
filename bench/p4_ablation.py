"""P4, the published ablation: pass-through on and off over the same traces, on virtual time.

``upright bench p4`` in a process of its own; here its JSON becomes tables and plots.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.curves import Curves, Point
from bench.tables import Report, Table
from bench.world import World
from upright.cli.bench.ablation.arms import Arm
from upright.cli.bench.ablation.findings import Findings
from upright.cli.bench.ablation.paired import Interval
from upright.cli.bench.ablation.tables import tables
from upright.cli.bench.ablation.whole import ALL, Whole
from upright.core.routing import PassThrough

WITHIN_S: Final = 7200.0
NOTES: Final = (
    "virtual time, a database in memory, the hub's own intake, routing, turns and prompts",
    "the model is scripted and decides from the request alone",
    "95 % intervals are Student's, of differences paired by seed",
    "tokens: four bytes each; what a prompt shares with an earlier one of its session is cached",
    "dollars: gpt-5-mini for the router, gpt-5 for workers, at the price table's date",
    "published: +30 % router decisions, 23.2 M to 31.8 M cache-read tokens, completion unchanged",
    "goal: these signs at 1 follow-up a task; fewer cache-read tokens than the plain design",
)


async def run(world: World) -> Report:
    """Run it, and look that nothing makes it worthless."""
    command = [sys.executable, "-m", "upright", "bench", "p4", "--json"]
    small = ["--seeds", "2", "--tasks", "1", "--at", "0", "--at", "1"]
    asked = world.pick(["--long", "--real"], small)
    whole = Whole.of_json(await world.ask([*command, *asked], within_s=WITHIN_S))
    return report(whole)


def report(whole: Whole) -> Report:
    """Write down what was found."""
    shown = [
        Table(
            heading=f"P4 ablation: {one.heading[0].lower()}{one.heading[1:]}",
            columns=one.columns,
            rows=one.rows,
        )
        for one in tables(whole)
    ]
    runs = next(iter(whole.found.runs.values()))
    size = f"{len(runs)} seeds, {runs[0].tasks} tasks a trace"
    shown[-1] = replace(shown[-1], notes=(size, *NOTES))
    found = whole.found
    plots = [
        _changes(found, "p4-decisions", "router decisions", {"published: +30 %": 30.0}),
        _changes(found, "p4-cached", "cache-read tokens", {"published: +37 %": 37.1}),
        _changes(found, "p4-completion", "completion, s", {}),
        _levels(found, "p4-levels", "cache-read tokens"),
    ]
    return Report(tables=shown, plots=plots)


def _changes(found: Findings, name: str, measure: str, marks: dict[str, float]) -> Curves:
    """Every arm against pass-through of all with the same batching."""
    arms = [arm for arm in found.arms if arm.passes is not PassThrough.ALL]
    lines = {
        arm.name: [
            _point(found.change(Arm(passes=ALL.passes, folds=arm.folds), arm, at, measure=measure))
            for at in found.follow_ups
        ]
        for arm in arms
    }
    heading = f"P4: change of {measure} against all, over follow-ups a task"
    return Curves(
        name=name, heading=heading, unit="%", places=_places(found), lines=lines, marks=marks
    )


def _levels(found: Findings, name: str, measure: str) -> Curves:
    lines = {
        arm.name: [_point(found.level(arm, at, measure)) for at in found.follow_ups]
        for arm in found.arms
    }
    heading = f"P4: {measure} per finished task, over follow-ups a task"
    return Curves(name=name, heading=heading, unit="", places=_places(found), lines=lines, marks={})


def _places(found: Findings) -> Sequence[str]:
    return [f"{at:g}" for at in found.follow_ups]


def _point(of: Interval) -> Point:
    return of.middle, of.low, of.high
