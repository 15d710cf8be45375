"""Tables: figures as they are written down: medians with their spread, ratios, and small plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import Final

from bench.curves import Curves

MISSING: Final = "missing"
_LABEL: Final = 260  # pixels, as the others
_BAR: Final = 420
_ROW: Final = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured thing: its value in each round, and their unit; without values it is missing.

    ``why`` says what is missing, or what else must be known to read the figure.
    """

    name: str
    unit: str
    values: tuple[float, ...] = ()
    why: str = ""

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)

    def shown(self) -> str:
        """Write the median and the spread."""
        if not self.values:
            return f"{MISSING}: {self.why}" if self.why else MISSING
        return spread(self.values, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of texts, under a heading, with notes below it."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Horizontal bars, one a figure; a figure without values has no bar."""

    name: str
    heading: str
    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one bench found: its tables, its plots."""

    tables: Sequence[Table]
    plots: Sequence[Plot | Curves] = ()


def number(value: float) -> str:
    """Write a number with three digits that count, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def spread(values: Sequence[float], unit: str = "") -> str:
    """Write a median and its range."""
    middle = f"{number(median(values))} {unit}".strip()
    if len(values) == 1:
        return middle
    return f"{middle} ({number(min(values))} to {number(max(values))})"


def ratio(ours: Figure, other: Figure) -> str:
    """Write ours over the other, round by round: what was measured in one round belongs together.

    Two figures of different length are compared by their medians.
    """
    if not ours.values or not other.values:
        return "-"
    if len(ours.values) != len(other.values):
        return number(ours.middle / other.middle)
    return spread([a / b for a, b in zip(ours.values, other.values, strict=True)])


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of them lies; the nearest one that was measured."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def markdown(table: Table) -> str:
    """Write a table as Markdown."""
    lines = [
        f"### {table.heading}",
        "",
        f"| {' | '.join(table.columns)} |",
        f"|{'---|' * len(table.columns)}",
        *(f"| {' | '.join(row)} |" for row in table.rows),
        "",
    ]
    if table.notes:
        lines += [*(f"- {note}" for note in table.notes), ""]
    return "\n".join(lines)


def svg(plot: Plot) -> str:
    """Draw bars from zero, each with a whisker over its range."""
    most = max((max(one.values) for one in plot.figures if one.values), default=1.0) or 1.0
    height = _ROW * (len(plot.figures) + 1) + 14
    width = _LABEL + _BAR + 230
    size = f'width="{width}" height="{height}"'
    font = 'font-family="sans-serif" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {font}>',
        f'<rect {size} fill="#ffffff"/>',
        f'<text x="8" y="18" font-weight="bold">{escape(plot.heading)}</text>',
    ]
    for index, figure in enumerate(plot.figures, 1):
        parts += _bar(figure, index * _ROW + 4, most)
    return "\n".join([*parts, "</svg>", ""])


def _bar(figure: Figure, top: int, most: float) -> list[str]:
    line = top + 16
    drawn = [f'<text x="{_LABEL - 8}" y="{line}" text-anchor="end">{escape(figure.name)}</text>']
    if not figure.values:
        return [*drawn, f'<text x="{_LABEL}" y="{line}" fill="#888888">{MISSING}</text>']
    long, low, high = (
        max(_BAR * value / most, 1.0)
        for value in (figure.middle, min(figure.values), max(figure.values))
    )
    colour = "#2266aa" if figure.name.startswith("upright") else "#b0b8c0"
    middle, said = top + 11, f"{number(figure.middle)} {figure.unit}"
    return [
        *drawn,
        f'<rect x="{_LABEL}" y="{top + 3}" width="{long:.1f}" height="16" fill="{colour}"/>',
        f'<path d="M{_LABEL + low:.1f} {middle}H{_LABEL + high:.1f}" stroke="#333333"/>',
        f'<text x="{_LABEL + max(long, high) + 8:.1f}" y="{line}">{escape(said)}</text>',
    ]
