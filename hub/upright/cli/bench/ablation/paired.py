"""Paired: what an arm changes against another over the same traces, with 95 % intervals.

The intervals are Student's, of the differences seed by seed: what the traces have in common falls
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Final

# the 97.5 % quantiles of Student's t for 1 … 30 degrees of freedom; the normal one beyond
_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL: Final = 1.960


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean, and how far its 95 % interval reaches to each side; infinitely of one value."""

    middle: float
    reach: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.middle - self.reach

    @property
    def high(self) -> float:
        """The upper end."""
        return self.middle + self.reach

    @property
    def sign(self) -> int:
        """1 or -1 where the whole interval is on one side of 0; else 0."""
        return (self.low > 0) - (self.high < 0)


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of *values* with its interval."""
    freedom = len(values) - 1
    if freedom < 1:
        return Interval(middle=mean(values), reach=float("inf"))
    t = _T[freedom - 1] if freedom <= len(_T) else _NORMAL
    return Interval(middle=mean(values), reach=t * stdev(values) / sqrt(len(values)))


def change(base: Sequence[float], other: Sequence[float]) -> Interval:
    """Return by how much *other* is above *base*, pair by pair, in per cent of base."""
    return interval([100 * (b / a - 1) for a, b in zip(base, other, strict=True)])
