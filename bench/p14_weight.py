"""P14, weight: how soon hub and daemon are ready, what they weigh idle, and on the disk."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Final

from bench import link
from bench.peers import ROOT
from bench.tables import Figure, Report, Table
from bench.world import SOURCE, World
from upright.cli.demo.children import Child

MEBI: Final = 2**20
SETTLE_S: Final = 2.0
INSTALL_S: Final = 240
HUB: Final = "upright serve"
DAEMON: Final = "execd run, linked"
FLOOR: Final = "asyncio and websockets alone"
_FLOOR: Final = """
import asyncio, pathlib, sys, websockets.asyncio.client, websockets.asyncio.server
async def main():
    async with websockets.asyncio.server.serve(lambda s: s.wait_closed(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with websockets.asyncio.client.connect(f"ws://127.0.0.1:{port}"):
            pathlib.Path(sys.argv[1]).write_text("ready")
            await asyncio.Event().wait()
asyncio.run(main())
"""


async def run(world: World) -> Report:
    """Measure starts in turn, then install sizes."""
    ready: dict[str, list[float]] = {HUB: [], DAEMON: [], FLOOR: []}
    weight: dict[str, list[float]] = {HUB: [], DAEMON: [], FLOOR: []}

    async def note(name: str, took_s: float, pid: int) -> None:
        ready[name].append(1000 * took_s)
        await world.clock.sleep(world.pick(SETTLE_S, 0.1))
        said = await world.children.run(["ps", "-o", "rss=", "-p", str(pid)], env={}, within_s=10)
        weight[name].append(int(said) / 1024)

    for _ in range(world.pick(5, 1)):
        hub, took_s = await world.timed_hub(SOURCE)
        await note(HUB, took_s, hub.child.process.pid)
        await world.end(hub.child)
        async with link.linked(world) as linked:
            await note(DAEMON, linked.began_s, linked.pid)
        child, took_s = await _floor(world)
        await note(FLOOR, took_s, child.process.pid)
        await world.end(child)
    rows = [
        (
            name,
            Figure(name=name, unit="ms", values=tuple(ready[name])).shown(),
            Figure(name=name, unit="MiB", values=tuple(weight[name])).shown(),
        )
        for name in ready
    ]
    started = Table(
        heading="P14 start and weight",
        columns=("process", "start to ready", "resident, idle"),
        rows=rows,
        notes=(
            "the goals: the hub at most 120 MB, the daemon at most 45 MB",
            (
                "the hub has one GitHub source and no model; ready is when it listens, and for the "
                "daemon when its link is synced"
            ),
        ),
    )
    return Report(tables=[started, await asyncio.to_thread(_sizes, world)])


async def _floor(world: World) -> tuple[Child, float]:
    ready = world.place("floor") / "ready"
    began = perf_counter()
    child, _ = await world.start("floor", [sys.executable, "-c", _FLOOR, str(ready)], ready)
    took_s = perf_counter() - began
    return child, took_s


# ------------------------------------------------------------------ on the disk
def _sizes(world: World) -> Table:
    """Install each distribution alone, without its development tools, and add up the files."""
    rows = []
    for name, what in (("upright (hub, daemon, plugins)", "."), ("upright-execd alone", "./execd")):
        figure = Figure(name=name, unit="MiB", why="not looked at in a quick run")
        packages = ""
        if not world.quick:
            figure, packages = _installed(name, what, world.place("venv"))
        rows.append((name, figure.shown(), packages))
    columns = ("installed", "site-packages, without pip", "distributions")
    return Table(heading="P14 install size", columns=columns, rows=rows)


def _installed(name: str, what: str, venv: Path) -> tuple[Figure, str]:
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=INSTALL_S)
    pip = [str(venv / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
    constraints = ["-c", str(ROOT / "constraints.txt")]
    done = subprocess.run(
        [*pip, "install", "--quiet", *constraints, what],
        check=False,
        timeout=INSTALL_S,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return Figure(name=name, unit="MiB", why=done.stderr.strip().splitlines()[-1][:120]), ""
    (site,) = (venv / "lib").glob("python*/site-packages")
    brought = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence")
    files = [
        path
        for path in site.rglob("*")
        if path.is_file() and not path.relative_to(site).parts[0].startswith(brought)
    ]
    size = sum(path.stat().st_size for path in files) / MEBI
    listed = subprocess.run(
        [*pip, "list", "--format", "json"],
        check=True,
        timeout=INSTALL_S,
        capture_output=True,
        text=True,
    )
    count = len([one for one in json.loads(listed.stdout) if one["name"] not in brought])
    return Figure(name=name, unit="MiB", values=(size,)), str(count)
