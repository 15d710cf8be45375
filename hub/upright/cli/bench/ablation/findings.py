"""Findings: the runs of a grid, seed by seed, and what the arms differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from upright.cli.bench.ablation.arms import Arm, Cell
from upright.cli.bench.ablation.books import Bill
from upright.cli.bench.ablation.mind import ROUTER, WORKER
from upright.cli.bench.ablation.paired import Interval, change, interval
from upright.cli.bench.ablation.play import Outcome
from upright.core.routing import PassThrough

Measure = Callable[[Outcome], float]
MEASURES: Final[Mapping[str, Measure]] = {
    "router decisions": lambda one: one.router.calls / one.tasks,
    "worker calls": lambda one: one.worker.calls / one.tasks,
    "input tokens": lambda one: (one.router.input + one.worker.input) / one.tasks,
    "cache-read tokens": lambda one: one.cached,
    "of them the router's": lambda one: one.router.cached / one.tasks,
    "output tokens": lambda one: (one.router.output + one.worker.output) / one.tasks,
    "completion, s": lambda one: one.mean_s,
    "US dollars": lambda one: one.usd,
}
"""What is compared; all of it for each finished task."""
PLAIN: Final = Arm(passes=PassThrough.NONE, folds=False)
"""The plain design: the router forwards everything, one trigger at a time."""


@dataclass(slots=True)
class Findings:
    """Outcomes by arm and follow-ups, in the order of the seeds."""

    runs: dict[tuple[Arm, float], list[Outcome]] = field(default_factory=dict)

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Add a run; seeds come in the same order for each arm."""
        self.runs.setdefault((cell.arm, cell.follow_ups), []).append(outcome)

    @property
    def arms(self) -> list[Arm]:
        """The arms."""
        return list(dict.fromkeys(arm for arm, _ in self.runs))

    @property
    def follow_ups(self) -> list[float]:
        """The numbers of follow-ups a task."""
        return sorted({follow_ups for _, follow_ups in self.runs})

    def values(self, arm: Arm, follow_ups: float, measure: str) -> list[float]:
        """Return a measure, seed by seed."""
        return [MEASURES[measure](one) for one in self.runs[arm, follow_ups]]

    def level(self, arm: Arm, follow_ups: float, measure: str) -> Interval:
        """Return the mean of a measure."""
        return interval(self.values(arm, follow_ups, measure))

    def change(self, base: Arm, other: Arm, follow_ups: float, *, measure: str) -> Interval:
        """Return how far *other* is above *base*, in per cent, paired by seed."""
        return change(
            self.values(base, follow_ups, measure), self.values(other, follow_ups, measure)
        )

    def failures(self) -> list[str]:
        """Say what makes the experiment worthless; nothing when all is well."""
        found = [
            f"seed {number}: without follow-ups the router's transcript differs between arms"
            for number, transcripts in enumerate(_placebo(self.runs), start=1)
            if len(transcripts) > 1
        ]
        busts = sum(one.busts for runs in self.runs.values() for one in runs)
        return [*found, *([f"{busts} prompts did not begin with the one before"] if busts else [])]

    def as_rows(self) -> list[dict[str, Any]]:
        """Return every run as JSON values."""
        return [
            {
                "arm": arm.passes.value,
                "batching": arm.folds,
                "compaction": arm.compacts,
                "follow_ups": follow_ups,
                "seed": seed,
                **asdict(outcome),
            }
            for (arm, follow_ups), outcomes in self.runs.items()
            for seed, outcome in enumerate(outcomes, start=1)
        ]

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Findings:
        """Read what :meth:`as_rows` wrote."""
        found = cls()
        for row in rows:
            arm = Arm(
                passes=PassThrough(row["arm"]), folds=row["batching"], compacts=row["compaction"]
            )
            cell = Cell(arm=arm, follow_ups=row["follow_ups"], seed=row["seed"])
            found.add(cell, outcome_of(row))
        return found


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """Read an outcome from its JSON values."""
    values = {one.name: row[one.name] for one in fields(Outcome)}
    bills = {role: Bill(**row[role]) for role in (ROUTER, WORKER)}
    return Outcome(**{**values, **bills})


def _placebo(runs: Mapping[tuple[Arm, float], Sequence[Outcome]]) -> Iterable[set[str]]:
    idle = [outcomes for (_, follow_ups), outcomes in runs.items() if not follow_ups]
    return [{one.transcript for one in outcomes} for outcomes in zip(*idle, strict=True)]
