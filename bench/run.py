"""Bench: the figures of the spine, measured on this machine in one run.

Prints a table, and writes it to ``bench/results.md``. A figure is a median with its range.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

RESULTS: Final = Path(__file__).with_name("results.md")
DEMO_S: Final = 180


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing: its values over the runs, and their unit."""

    name: str
    values: tuple[float, ...]
    unit: str

    def row(self) -> str:
        """Write a table row."""
        low, high = min(self.values), max(self.values)
        middle = median(self.values)
        spread = f"{low:.3g} to {high:.3g}"
        return f"| {self.name} | {middle:.3g} {self.unit} | {spread} | {len(self.values)} |"


def demo(seed: int) -> dict[str, Any]:
    """Run the demo once; its result is one JSON object."""
    argv = [sys.executable, "-m", "upright", "demo", "--json", "--seed", str(seed)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEMO_S, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def spine(runs: int) -> list[Figure]:
    """Measure the demo's path: set-up, first byte, commands, the whole."""
    results = [demo(seed) for seed in range(runs)]

    def over(name: str, unit: str, factor: float = 1.0) -> Figure:
        values = tuple(factor * result["figures"][name] for result in results)
        return Figure(name.replace("_", " "), values, unit)

    return [
        over("webhook_to_first_model_byte_s", "ms", 1000),
        over("webhook_to_worker_model_byte_s", "ms", 1000),
        over("quickest_command_s", "ms", 1000),
        over("set_up_s", "s"),
        over("whole_s", "s"),
    ]


def main() -> None:
    """Run what was asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    figures = spine(parser.parse_args().runs)
    lines = [
        "# Results",
        "",
        f"Python {platform.python_version()}, {platform.machine()}, two cores, shared and noisy:",
        "take the order of magnitude.",
        "",
        "| what | median | range | runs |",
        "|---|---|---|---|",
        *(figure.row() for figure in figures),
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
