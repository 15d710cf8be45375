"""``upright bench``: the list of benches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from upright.cli.lazy import LazyGroup


class Benches(LazyGroup):
    """The benches."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = {
        "kill": ("upright.cli.bench.kill:kill", "Kill hub and execd in mid-work; lose nothing."),
        "p4": (
            "upright.cli.bench.ablation.command:p4",
            "Pass-through on and off over the same traces: decisions, tokens, time.",
        ),
        "p5": (
            "upright.cli.bench.cache.command:p5",
            "A replayed day: how much of each prompt was sent before.",
        ),
        "siege": (
            "upright.cli.bench.siege.command:siege",
            "Kill, stop, starve and cut off the hub under load; lose nothing.",
        ),
    }


@click.group(cls=Benches)
def bench() -> None:
    """Measure, and try to break it."""
