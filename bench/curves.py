"""Curves: lines over a few places, each with whiskers, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Final

_WIDE: Final = 560  # pixels of the field; the others alike
_HIGH: Final = 260
_LEFT: Final = 70
_TOP: Final = 34
_COLOURS: Final = ("#2266aa", "#cc7722", "#448844", "#884488", "#888888", "#222222")
Point = tuple[float, float, float]
"""The middle, the lower and the upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Lines over places that stand side by side, evenly; each has a point at every place.

    ``marks`` are values to compare with: dashed, with their names.
    """

    name: str
    heading: str
    unit: str
    places: Sequence[str]
    lines: Mapping[str, Sequence[Point]]
    marks: Mapping[str, float]


def drawn(curves: Curves) -> str:
    """Draw them, with a legend on the right."""
    points = [point for line in curves.lines.values() for point in line]
    values = [end for point in points for end in point if isfinite(end)]
    low, high = min(0.0, *values), max(0.0, *values, *curves.marks.values()) or 1.0
    scale = _Scale(low=low, high=high, places=len(curves.places))
    size = f'width="{_LEFT + _WIDE + 210}" height="{_TOP + _HIGH + 40}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        f'<rect {size} fill="#ffffff"/>',
        f'<text x="8" y="18" font-weight="bold">{escape(curves.heading)}</text>',
        *_axes(curves, scale),
        *(part for name, value in curves.marks.items() for part in _mark(name, value, scale)),
    ]
    for index, (name, line) in enumerate(curves.lines.items()):
        parts += _line(name, line, scale, index=index)
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    low: float
    high: float
    places: int

    def x(self, place: int) -> float:
        return _LEFT + _WIDE * (place + 0.5) / self.places

    def y(self, value: float) -> float:
        return _TOP + _HIGH * (self.high - value) / (self.high - self.low)


def _axes(curves: Curves, scale: _Scale) -> list[str]:
    steps = [float(f"{scale.low + (scale.high - scale.low) * n / 4:.2g}") for n in range(5)]
    parts = []
    for value in steps:
        y = scale.y(value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _WIDE}" stroke="#dddddd"/>')
        said = escape(f"{value:.6g} {curves.unit}".strip())
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{said}</text>')
    for place, name in enumerate(curves.places):
        at = f'x="{scale.x(place):.1f}" y="{_TOP + _HIGH + 18}"'
        parts.append(f'<text {at} text-anchor="middle">{escape(name)}</text>')
    return parts


def _mark(name: str, value: float, scale: _Scale) -> list[str]:
    y = scale.y(value)
    return [
        f'<path d="M{_LEFT} {y:.1f}H{_LEFT + _WIDE}" stroke="#aa2222" stroke-dasharray="5 4"/>',
        f'<text x="{_LEFT + 6}" y="{y - 4:.1f}" fill="#aa2222">{escape(name)}</text>',
    ]


def _line(name: str, line: Sequence[Point], scale: _Scale, *, index: int) -> list[str]:
    colour = _COLOURS[index % len(_COLOURS)]
    at = [(scale.x(place), scale.y(point[0])) for place, point in enumerate(line)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    whiskers = "".join(
        f"M{scale.x(place):.1f} {scale.y(low):.1f}V{scale.y(high):.1f}"
        for place, (_, low, high) in enumerate(line)
        if isfinite(low) and isfinite(high)
    )
    legend = _TOP + 16 * (index + 1)
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<path d="{whiskers}" stroke="{colour}"/>',
        f'<text x="{_LEFT + _WIDE + 12}" y="{legend}" fill="{colour}">{escape(name)}</text>',
    ]
