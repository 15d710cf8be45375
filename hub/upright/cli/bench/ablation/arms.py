"""Arms: what is varied in the experiment, and the grid of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from upright.core.compaction import ContextBounds
from upright.core.fold import QUIET, Quiet
from upright.core.routing import PassThrough

FOLLOW_UPS: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""How many triggers come for a task after the one that opens it."""

PASSES: Final = tuple(PassThrough)
ROUTER_TOKENS: Final = 32_000
NEVER: Final = Quiet(quiet_ms=0, most_ms=0)
"""No window: each trigger wakes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to run a trace: ``folds`` is batching, ``compacts`` the router's at 32k tokens."""

    passes: PassThrough
    folds: bool = True
    compacts: bool = False

    @property
    def quiet(self) -> Quiet:
        """The quiet window of intake."""
        return QUIET if self.folds else NEVER

    @property
    def name(self) -> str:
        """How tables name it."""
        batching, bound = (
            ("" if self.folds else ", no batching"),
            (", 32k" if self.compacts else ""),
        )
        return f"{self.passes.value}{batching}{bound}"

    @property
    def bounds(self) -> ContextBounds:
        """From how many tokens on a prompt is compacted: a worker's never is."""
        return ContextBounds(router=ROUTER_TOKENS if self.compacts else 0, worker=0)


ARMS: Final = tuple(Arm(passes=passes, folds=folds) for folds in (True, False) for passes in PASSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run: an arm over the trace of a seed, with so many follow-ups a task."""

    arm: Arm
    follow_ups: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is run: every arm over every trace."""

    seeds: int
    tasks: int
    arms: tuple[Arm, ...] = ARMS
    follow_ups: tuple[float, ...] = FOLLOW_UPS

    def cells(self) -> Iterator[Cell]:
        """Yield the cells, seed by seed, so that a run that is cut short is still paired."""
        for seed in range(1, self.seeds + 1):
            for follow_ups in self.follow_ups:
                for arm in self.arms:
                    yield Cell(arm=arm, follow_ups=follow_ups, seed=seed)
