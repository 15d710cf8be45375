"""Bench: measure us and our peers side by side on this machine; write tables and plots.

``make bench`` runs everything but ``kill`` and ``siege``, which take long; ``make bench ARGS="p1
p7"`` a selection, which keeps what stands of the others in results.md; ``--quick`` is for smoke. A
figure is a median with its range over rounds that were interleaved with the peers'; a ratio counts,
an absolute time does not.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from bench import (
    demo,
    kill,
    p1_intake,
    p2_pass_through,
    p3_folding,
    p4_ablation,
    p5_cache,
    p6_sleep,
    p7_commands,
    p7_cuts,
    p8_links,
    p10_fast_path,
    p12_overhead,
    p14_weight,
    siege,
)
from bench.curves import drawn
from bench.peers import NOBODY, Peers, find
from bench.tables import Plot, Report, markdown, svg
from bench.world import World, opened

BENCHES: Final[dict[str, Callable[[World], Awaitable[Report]]]] = {
    "p1": p1_intake.run,
    "p2": p2_pass_through.run,
    "p3": p3_folding.run,
    "p4": p4_ablation.run,
    "p5": p5_cache.run,
    "p6": p6_sleep.run,
    "p7": p7_commands.run,
    "cuts": p7_cuts.run,
    "p8": p8_links.run,
    "p10": p10_fast_path.run,
    "p12": p12_overhead.run,
    "p14": p14_weight.run,
    "demo": demo.run,
    "kill": kill.run,
    "siege": siege.run,
}
LIMITS_S: Final = {"p4": p4_ablation.WITHIN_S}
"""The limits of those that run unnamed, and take longer than others."""
LONG: Final = {
    "cuts": p7_cuts.WITHIN_S,
    "kill": kill.WITHIN_S,
    "p6": p6_sleep.WITHIN_S,
    "p8": p8_links.WITHIN_S,
    "siege": siege.WITHIN_S,
}
"""What runs when it is named, within a limit of its own (seconds)."""
EACH_S: Final = 600.0
"""The limit of any other."""
HERE: Final = Path(__file__).parent
SECTION: Final = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- end \1 -->\n", re.DOTALL)


async def measure(names: Sequence[str], peers: Peers, out: Path, *, quick: bool) -> None:
    """Run the benches one after the other, each in a world of its own; write each at once."""
    for name in names:
        began = perf_counter()
        async with (
            asyncio.timeout({**LONG, **LIMITS_S}.get(name, EACH_S)),
            opened(peers, quick=quick) as world,
        ):
            report = await BENCHES[name](world)
        print(f"{written(report)}\n{name}: {perf_counter() - began:.0f} s\n", flush=True)
        await asyncio.to_thread(write, out, name, report, peers)


def written(report: Report) -> str:
    """Write a bench's section."""
    shown = [markdown(table) for table in report.tables]
    return "\n".join([*shown, *(f"![{p.heading}]({p.name}.svg)\n" for p in report.plots)])


def head(peers: Peers) -> str:
    """Say on what it was measured, and against which versions."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(peers.versions.items()))
    return "\n".join(
        [
            "# Results",
            "",
            (
                f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
                f"{platform.machine()}, {os.cpu_count()} processors, shared and noisy: medians "
                "with their range; a ratio counts, an absolute time does not. "
                "Written by `make bench`."
            ),
            "",
            f"Peers: {versions or 'none installed'}.",
            "",
        ]
    )


def write(out: Path, name: str, report: Report, peers: Peers) -> None:
    """Write a bench's section of results.md, and its plots; the others stay, by hand ones last."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "results.md"
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    sections = {**dict(SECTION.findall(old)), name: written(report)}
    for plot in report.plots:
        picture = svg(plot) if isinstance(plot, Plot) else drawn(plot)
        (out / f"{plot.name}.svg").write_text(picture, encoding="utf-8")
    by_hand = [one for one in sections if one not in BENCHES]
    known = [one for one in BENCHES if one in sections]
    parts = [f"<!-- {one} -->\n{sections[one]}<!-- end {one} -->\n" for one in (*known, *by_hand)]
    file.write_text("\n".join([head(peers), *parts]), encoding="utf-8")


def main() -> None:
    """Run what was asked for, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="for smoke: install nothing, be short")
    parser.add_argument("--alone", action="store_true", help="without peers")
    parser.add_argument("--out", type=Path, default=HERE, help="where results.md and plots go")
    given = parser.parse_args()
    names = given.names or [name for name in BENCHES if name not in LONG]
    if unknown := [name for name in names if name not in BENCHES]:
        parser.error(f"no such bench: {', '.join(unknown)}")
    peers = NOBODY if given.alone else find(install=not given.quick)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # processes are ended then, too
    asyncio.run(measure(names, peers, given.out, quick=given.quick))


if __name__ == "__main__":
    main()
