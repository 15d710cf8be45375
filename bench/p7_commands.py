"""P7, commands: over the link with full durability, against bare spawning and two kinds of SSH."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

from bench import link, ssh
from bench.link import Linked
from bench.measures import MEBI, UNITS, Load, measure
from bench.proxy import Proxy, proxied
from bench.spawn import Spawn
from bench.tables import Figure, Plot, Report, Table, ratio
from bench.world import World

OURS: Final = "upright"
BARE: Final = "bare spawn"
OWN_SSH: Final = "asyncssh to asyncssh"
SSHD: Final = "asyncssh to sshd"
MASTER: Final = "ControlMaster"
WHOLE: Final = Load(
    ones=60,
    eights=25,
    firsts=15,
    cancels=3,
    stream_bytes=256 * MEBI,
    stderr_bytes=10_000_000,
)
QUICK: Final = Load(
    ones=3, eights=1, firsts=1, cancels=1, stream_bytes=2 * MEBI, stderr_bytes=10_000_000
)
NOTES: Final = (
    (
        "upright: a job's row, the link, execd, a shim, output rows, the end's commit; full "
        "durability on both sides. The others keep nothing: the output is counted and dropped"
    ),
    (
        "the goals: 0.45 of the bare rate one at a time and 0.75 eight at a time, faster than "
        "asyncssh eight at a time and than ControlMaster always; a stream at 0.6 of a bare socket"
    ),
    "long stdout: 256 MiB, the largest quota that a command may have on the wire",
    (
        "cancel: of a command that ends by itself after 2 s, so such a figure means: not "
        "cancelled. ControlMaster has nothing to pass a signal with, and sshd passes none on"
    ),
)

Round = Callable[[], Awaitable[dict[str, float]]]


async def run(world: World) -> Report:
    """Measure every runner in turn, round after round; then cut the link."""
    load = world.pick(WHOLE, QUICK)
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    async with link.linked(world) as ours:
        runners, lacking = await _runners(world, ours, load)
        sockets = []
        for name, one in [*runners.items()] * world.pick(3, 1):
            for what, value in (await one()).items():
                taken[what][name].append(value)
            if name == OURS:
                sockets.append(await _socket(world, load.stream_bytes))
    async with proxied() as proxy, link.linked(world, proxy) as ours:
        cuts = await _cuts(world, ours, proxy)
    names = [OURS, BARE, OWN_SSH, SSHD, MASTER]
    socket = Figure(name="bare socket", unit="MiB/s", values=tuple(sockets))
    return _report(_figures(taken, names, lacking), socket, cuts)


async def _runners(
    world: World, ours: Linked, load: Load
) -> tuple[dict[str, Round], dict[str, str]]:
    """Return how a round of each is run, and why some are not."""
    found: dict[str, Round] = {
        OURS: partial(measure, ours, load),
        BARE: partial(measure, Spawn(), load),
    }
    lacking = {}
    if lacks := world.peers.lacks("asyncssh"):
        lacking[OWN_SSH] = lacking[SSHD] = lacks
    else:
        folder = world.place("asyncssh")
        argv = [*world.program("asyncssh_server", of_peers=True), str(folder)]
        _, port = await world.start("asyncssh", argv, folder / "ready")
        found[OWN_SSH] = partial(_client, world, int(port), "bench", str(folder / "user"))
    if no_sshd := world.peers.lacks("ssh", "sshd", "ssh-keygen"):
        lacking[MASTER] = lacking[SSHD] = no_sshd
        return found, lacking
    sshd = await ssh.serve(world)
    found[MASTER] = partial(measure, Spawn(sshd.prefix), load)
    if not lacks:
        found[SSHD] = partial(_client, world, sshd.port, sshd.user, sshd.key)
    return found, lacking


async def _client(world: World, port: int, user: str, key: str) -> dict[str, float]:
    load = json.dumps(asdict(world.pick(WHOLE, QUICK)))
    argv = [*world.program("asyncssh_client", of_peers=True), str(port), user, key, load]
    figures: dict[str, float] = await world.ask(argv)
    return figures


async def _socket(world: World, size: int) -> float:
    """Return MiB/s of a bare socket between two processes."""
    done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began, got = perf_counter(), 0
        while piece := await reader.read(MEBI):
            got += len(piece)
        writer.close()
        done.set_result(got / MEBI / (perf_counter() - began))

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        argv = [*world.program("pour", of_peers=False), str(port), str(size)]
        await world.children.run(argv, env={}, within_s=60.0)
        return await done


# ------------------------------------------------------------------ the cut link
async def _cuts(world: World, ours: Linked, proxy: Proxy) -> Table:
    """Cut each of some streams once, at a random offset; look whether every byte came."""
    size = world.pick(16 * MEBI, MEBI)
    away_s = world.pick(5.0, 0.3)
    file = ours.root / "bytes"
    data = os.urandom(size)
    await asyncio.to_thread(file.write_bytes, data)
    wanted = hashlib.sha256(data).hexdigest()
    whole, back = 0, []
    times = world.pick(20, 2)
    for _ in range(times):
        cuts = proxy.cuts
        proxy.cut_after(secrets.randbelow(size - MEBI // 2) + 1, away_s)
        began = perf_counter()
        running = await ours.start(["cat", str(file)])
        await running.end()
        back.append(perf_counter() - began - away_s)
        assert proxy.cuts == cuts + 1, "the stream ended before its cut"
        whole += set(await ours.sha256(running.job)) == {wanted}
    took = Figure(name="", unit="s", values=tuple(back)).shown()
    rows = [(OURS, f"{whole} of {times}", took)]
    rows += await _cut_master(world, file, size)
    return Table(
        heading=f"P7 a link cut for {away_s:g} s in mid-stream, at random offsets",
        columns=("runner", "streams whole, by SHA-256", "time beside the cut's own"),
        rows=rows,
        notes=(f"streams of {size // MEBI} MiB; a cut resets every connection; redial within 1 s",),
    )


async def _cut_master(world: World, file: Path, size: int) -> list[tuple[str, str, str]]:
    """Cut streams of OpenSSH the same way: it does not connect again by itself."""
    if lacks := world.peers.lacks("ssh", "sshd", "ssh-keygen"):
        return [("OpenSSH", f"missing: {lacks}", "")]
    sshd, wanted, times = await ssh.serve(world), await asyncio.to_thread(file.read_bytes), 3
    whole = 0
    async with proxied() as proxy:
        proxy.target = sshd.port
        for _ in range(times):
            proxy.cut_after(size // 2, 0.0)
            got = await _alone(sshd, proxy.port, ["cat", str(file)])
            whole += hashlib.sha256(got).digest() == hashlib.sha256(wanted).digest()
    return [("OpenSSH, a connection of its own", f"{whole} of {times}", "ends with the link")]


async def _alone(sshd: ssh.Sshd, port: int, argv: Sequence[str]) -> bytes:
    """Run a command over a connection of its own; return what came of its stdout."""
    words = [word.replace(f"{sshd.port}", f"{port}") for word in sshd.prefix]
    words = [word for word in words if not word.startswith("ControlPath=")]
    child = await Spawn().start([words[0], "-o", "ControlPath=none", *words[1:], *argv])
    out, _ = await child.process.communicate()
    return out


# ------------------------------------------------------------------ what is written down
def _figures(
    taken: dict[str, dict[str, list[float]]], names: Sequence[str], lacking: dict[str, str]
) -> dict[str, list[Figure]]:
    return {
        what: [
            Figure(
                name=name,
                unit=unit,
                values=tuple(taken[what].get(name, ())),
                why=lacking.get(name, ""),
            )
            for name in names
        ]
        for what, unit in UNITS.items()
    }


def _report(figures: dict[str, list[Figure]], socket: Figure, cuts: Table) -> Report:
    columns = [one.name for one in next(iter(figures.values()))]
    values = Table(
        heading="P7 commands",
        columns=("what", *columns),
        rows=[(what, *(one.shown() for one in row)) for what, row in figures.items()],
        notes=(f"a bare socket between two processes takes {socket.shown()}", *NOTES),
    )
    rows = []
    for what, row in figures.items():
        more = "rate, more" if row[0].unit in {"/s", "MiB/s"} else "time, less"
        rows.append((f"{what} ({more} is better)", *(ratio(row[0], one) for one in row[1:])))
    stream = figures["long stdout"][0]
    against = ratio(stream, socket)
    rows.append(("long stdout over a bare socket (rate, more is better)", against, "", "", ""))
    ratios = Table(heading="P7 upright over the others", columns=("what", *columns[1:]), rows=rows)
    plots = [
        Plot(name=f"p7-{name}", heading=f"P7 {what}, commands a second", figures=figures[what])
        for name, what in (("one", "`true`, one at a time"), ("eight", "`true`, eight at a time"))
    ]
    return Report(tables=[values, ratios, cuts], plots=plots)
