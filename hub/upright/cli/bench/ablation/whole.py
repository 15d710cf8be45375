"""Whole: the experiment in all its parts: the grid, longer traces, and the real clock."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from upright.cli.bench.ablation.arms import Arm, Cell, Grid
from upright.cli.bench.ablation.findings import Findings, outcome_of
from upright.cli.bench.ablation.play import Outcome, play
from upright.cli.bench.ablation.real import TASKS as REAL_TASKS
from upright.cli.bench.ablation.real import play_really
from upright.core.routing import PassThrough
from upright.store.memory import Memory

ALL: Final = Arm(passes=PassThrough.ALL)
NONE: Final = Arm(passes=PassThrough.NONE)
TASKS: Final = 4
LONG_ARMS: Final = tuple(replace(arm, compacts=on) for on in (False, True) for arm in (ALL, NONE))
LENGTHS: Final = (6, 24, 96)
"""How many tasks the one router's session sees, in the runs on longer traces."""
LONG_SEEDS: Final = 3
TOLERATED: Final = 0.005
"""How far tokens may differ on the real clock: the results of commands say how long they took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """One cell on both clocks."""

    arm: Arm
    virtual: Outcome
    real: Outcome

    def agrees(self) -> bool:
        """Say whether the decisions are the same, and the tokens but for digits of times."""
        pairs = ((self.virtual.router, self.real.router), (self.virtual.worker, self.real.worker))
        return all(
            one.calls == other.calls
            and abs(one.input - other.input) <= TOLERATED * one.input
            and abs(one.cached - other.cached) <= TOLERATED * one.cached
            for one, other in pairs
        )


@dataclass(slots=True, kw_only=True)
class Whole:
    """What all parts found; ``lengths`` by the number of tasks, at one follow-up each."""

    found: Findings
    lengths: dict[int, Findings] = field(default_factory=dict)
    twins: list[Twin] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Say what makes the experiment worthless; nothing when all is well."""
        apart = [
            f"{one.arm.name}: the real clock disagrees" for one in self.twins if not one.agrees()
        ]
        return [*self.found.failures(), *apart]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "runs": self.found.as_rows(),
            "lengths": {str(tasks): found.as_rows() for tasks, found in self.lengths.items()},
            "real": [
                {
                    "arm": one.arm.passes.value,
                    "virtual": asdict(one.virtual),
                    "real": asdict(one.real),
                }
                for one in self.twins
            ],
            "failures": self.failures(),
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> Whole:
        """Read what :meth:`as_json` wrote."""
        return cls(
            found=Findings.of_rows(said["runs"]),
            lengths={int(n): Findings.of_rows(rows) for n, rows in said["lengths"].items()},
            twins=[
                Twin(
                    arm=Arm(passes=PassThrough(one["arm"])),
                    virtual=outcome_of(one["virtual"]),
                    real=outcome_of(one["real"]),
                )
                for one in said["real"]
            ],
        )


def measure(grid: Grid, memory: Memory, *, shows: bool = False) -> Findings:
    """Run every cell of a grid; *shows* on standard error how far it is."""
    found = Findings()
    for cell in grid.cells():
        found.add(cell, play(cell, grid.tasks, memory))
        if shows:
            sys.stderr.write(f"\r{grid.tasks} tasks, seed {cell.seed} of {grid.seeds}  ")
            sys.stderr.flush()
    return found


def longer(seeds: int, memory: Memory, *, shows: bool = False) -> dict[int, Findings]:
    """Run longer traces at one follow-up a task, with and without pass-through and compaction."""
    return {
        tasks: measure(
            Grid(seeds=seeds, tasks=tasks, arms=LONG_ARMS, follow_ups=(1.0,)),
            memory,
            shows=shows,
        )
        for tasks in LENGTHS
    }


def twins(memory: Memory) -> list[Twin]:
    """Run one trace on both clocks, with pass-through and without; it takes two minutes."""
    made = []
    for arm in (ALL, NONE):
        cell = Cell(arm=arm, follow_ups=1.0, seed=3)
        virtual = play(cell, REAL_TASKS, memory)
        made.append(Twin(arm=arm, virtual=virtual, real=play_really(cell)))
    return made
