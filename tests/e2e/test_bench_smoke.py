"""Each bench runs in small, writes its section and its plots, and leaves nothing running."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench import curves
from bench.tables import Figure, Plot, Table, markdown, ratio, svg
from upright.cli.demo.children import Children
from upright.engine.clock import SystemClock
from upright.settings.load import environment

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("p1", ["| upright serve |", "| bare handler |", "| DBOS enqueue | missing: no aiohttp"]),
        ("p2", ["| upright, from the first byte sent |"]),
        ("p3", ["| wakes of a thread, at most | 2 |", "| 0, 0 |"]),
        ("p4", ["| router decisions | 3.00 ± 0.00 |", "| 0 | +0.0 % (+0.0 to +0.0) |"]),
        ("p7", ["| `true`, one at a time |", "| upright | 2 of 2 |"]),
        ("p10", ["| gate on | 0 | 0 |"]),
        ("p12", ["| CPU a step |"]),
        ("p14", ["| upright serve |", "| execd run, linked |"]),
    ],
    ids=["p1", "p2", "p3", "p4", "p7", "p10", "p12", "p14"],
)
async def test_a_bench_runs_in_small_without_peers(
    name: str, rows: list[str], tmp_path: Path
) -> None:
    own = {**environment(), "TMPDIR": str(tmp_path)}  # so that its own folder is below ours
    children = Children(tmp_path, own, SystemClock())
    argv = [sys.executable, "-m", "bench.run", name, "--quick", "--alone", "--out", str(tmp_path)]
    await children.run(argv, env={"PYTHONPATH": str(ROOT)}, within_s=80)
    written = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert [row for row in rows if row not in written] == []
    assert await asyncio.to_thread(children.left, tmp_path) == []


def test_a_missing_figure_is_named_and_never_a_number() -> None:
    lost = Figure(name="peer", unit="ms", why="no peer")
    there = Figure(name="upright", unit="ms", values=(3.0, 1.0, 2.0))
    assert (lost.shown(), there.shown()) == ("missing: no peer", "2 ms (1 to 3)")
    assert ratio(there, lost) == "-"


def test_a_ratio_is_taken_round_by_round() -> None:
    ours = Figure(name="upright", unit="/s", values=(10.0, 1.0))
    other = Figure(name="peer", unit="/s", values=(20.0, 2.0))
    assert ratio(ours, other) == "0.5 (0.5 to 0.5)"


def test_a_plot_is_well_formed_and_has_a_bar_for_each_figure_that_is_there() -> None:
    there = [Figure(name=f"<{n}>", unit="/s", values=(float(n),)) for n in (1, 2)]
    drawn = ET.fromstring(
        svg(Plot(name="p", heading="a & b", figures=[*there, Figure(name="lost", unit="/s")]))
    )
    bars = [one for one in drawn.iter() if one.tag.endswith("rect")]
    assert len(bars) == 3  # the ground, and two
    line = {"<a>": [(1.0, 0.5, 1.5), (2.0, float("-inf"), float("inf"))]}
    two = curves.Curves(
        name="c", heading="a & b", unit="%", places=("0", "1"), lines=line, marks={"<m>": 9.0}
    )
    lines = [one for one in ET.fromstring(curves.drawn(two)).iter() if one.tag.endswith("polyline")]
    assert len(lines) == 1
    table = Table(heading="h", columns=("a",), rows=[("1",)], notes=("n",))
    assert markdown(table) == "### h\n\n| a |\n|---|\n| 1 |\n\n- n\n"
