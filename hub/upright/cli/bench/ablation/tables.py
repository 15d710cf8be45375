"""Tables: the findings as rows of text, for the terminal and for results.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Final

from upright.cli.bench.ablation.arms import Arm
from upright.cli.bench.ablation.findings import MEASURES, PLAIN, Findings
from upright.cli.bench.ablation.paired import Interval
from upright.cli.bench.ablation.whole import ALL, NONE, Twin, Whole
from upright.core.routing import PassThrough

CURVES: Final = ("router decisions", "cache-read tokens", "completion, s", "US dollars")
AT: Final = 1.0
"""The published experiment had about one follow-up a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: a heading, the columns' names, the rows."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(whole: Whole) -> list[Table]:
    """Return all tables: levels at one follow-up a task, changes over the curve, the rest."""
    found = whole.found
    shown = [_levels(found, AT)] if AT in found.follow_ups else []
    shown += [_changes(found, measure) for measure in CURVES]
    if PLAIN in found.arms and ALL in found.arms:
        shown.append(_against_plain(found))
    if whole.lengths:
        shown.append(_lengths(whole.lengths))
    return [*shown, *([_twins(whole.twins)] if whole.twins else [])]


def lines(table: Table) -> list[str]:
    """Write a table for a terminal."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(table.columns))]
    written = ["  ".join(one.ljust(w) for one, w in zip(row, widths, strict=True)) for row in rows]
    return [table.heading, *(row.rstrip() for row in written), ""]


def _levels(found: Findings, at: float) -> Table:
    rows = [
        [measure, *(level(found.level(arm, at, measure)) for arm in found.arms)]
        for measure in MEASURES
    ]
    columns = ["for each finished task", *(arm.name for arm in found.arms)]
    return Table(heading=f"Levels at {at:g} follow-up a task", columns=columns, rows=rows)


def _changes(found: Findings, measure: str) -> Table:
    """Each arm against pass-through of all, with the same batching."""
    pairs = [(_base(arm), arm) for arm in found.arms if arm.passes is not PassThrough.ALL]
    rows = [
        [
            f"{at:g}",
            *(change(found.change(base, arm, at, measure=measure)) for base, arm in pairs),
        ]
        for at in found.follow_ups
    ]
    columns = ["follow-ups a task", *(arm.name for _, arm in pairs)]
    return Table(heading=f"Change of {measure}, against all", columns=columns, rows=rows)


def _base(arm: Arm) -> Arm:
    return Arm(passes=PassThrough.ALL, folds=arm.folds)


def _against_plain(found: Findings) -> Table:
    measures = ("router decisions", "worker calls", "cache-read tokens", "US dollars")
    rows = [
        [
            f"{at:g}",
            *(change(found.change(PLAIN, ALL, at, measure=measure)) for measure in measures),
        ]
        for at in found.follow_ups
    ]
    heading = "Pass-through and batching on, against the plain design (neither)"
    return Table(heading=heading, columns=["follow-ups a task", *measures], rows=rows)


def _lengths(lengths: Mapping[int, Findings]) -> Table:
    """None against all, with the same compaction, over how much the one router has seen."""
    measures = ("router decisions", "cache-read tokens", "of them the router's", "completion, s")
    rows = [
        [
            str(tasks),
            "32k" if base.compacts else "none",
            level(found.level(base, AT, "cache-read tokens")),
            level(found.level(base, AT, "of them the router's")),
            *(
                change(found.change(base, replace(base, passes=NONE.passes), AT, measure=measure))
                for measure in measures
            ),
        ]
        for tasks, found in lengths.items()
        for base in found.arms
        if base.passes is ALL.passes
    ]
    heading = "Longer traces: none against all, at 1 follow-up a task"
    levels = ["cache-read tokens, all", "of them the router's, all"]
    columns = ["tasks", "compaction", *levels, *measures]
    return Table(heading=heading, columns=columns, rows=rows)


def _twins(twins: Sequence[Twin]) -> Table:
    rows = [
        [
            f"{twin.arm.name}, {clock}",
            *(str(n) for n in (one.router.calls, one.worker.calls)),
            *(str(n) for n in (one.router.input + one.worker.input, round(one.cached * one.tasks))),
            f"{one.mean_s:.0f} s",
        ]
        for twin in twins
        for clock, one in (("virtual", twin.virtual), ("real", twin.real))
    ]
    columns = ["clock", "router decisions", "worker calls", "input", "cache-read", "completion"]
    return Table(heading="The same run on both clocks", columns=columns, rows=rows)


def level(of: Interval) -> str:
    """Write a mean with its interval."""
    digits = 0 if of.middle >= 100 else 1 if of.middle >= 10 else 2 if of.middle >= 1 else 4
    middle = f"{of.middle:,.{digits}f}".replace(",", " ")
    return middle if isinf(of.reach) else f"{middle} ± {of.reach:,.{digits}f}".replace(",", " ")


def change(of: Interval) -> str:
    """Write a change in per cent with its interval."""
    if isinf(of.reach):
        return f"{of.middle:+.1f} %"
    return f"{of.middle:+.1f} % ({of.low:+.1f} to {of.high:+.1f})"
