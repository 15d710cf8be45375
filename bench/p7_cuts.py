"""P7, the long one: a stream of a GiB, cut at twenty random places; every byte must come, once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from pathlib import Path
from time import perf_counter
from typing import Final

from bench import link
from bench.measures import MEBI
from bench.proxy import Proxy, proxied
from bench.tables import Report, Table
from bench.world import World

WITHIN_S: Final = 1800.0
AWAY_S: Final = 0.2


async def run(world: World) -> Report:
    """Send the stream, cut it again and again, and compare what the hub stored."""
    size, cuts = world.pick(1024 * MEBI, 4 * MEBI), world.pick(20, 2)
    async with proxied() as proxy, link.linked(world, proxy) as ours:
        file = ours.root / "bytes"
        wanted = await asyncio.to_thread(_made, file, size)
        began = perf_counter()
        async with asyncio.TaskGroup() as group:
            cutter = group.create_task(_cut(proxy, size, cuts), name="cutter")
            running = await ours.start(["cat", str(file)], quota_bytes=size + 4 * MEBI)
            await running.end(WITHIN_S)
            cutter.cancel()
        took_s = perf_counter() - began
        found = set(await ours.sha256(running.job))
    return _report(size, proxy.cuts, is_whole=found == {wanted}, took_s=took_s)


async def _cut(proxy: Proxy, size: int, cuts: int) -> None:
    """Cut the link at random places, one after the other."""
    least = size // (4 * cuts)
    for _ in range(cuts):
        proxy.was_cut.clear()
        proxy.cut_after(least + secrets.randbelow(size // cuts // 2), AWAY_S)
        await proxy.was_cut.wait()


def _made(file: Path, size: int) -> str:
    """Write random bytes; return their SHA-256."""
    sha = hashlib.sha256()
    with file.open("wb") as out:
        for _ in range(size // MEBI):
            piece = os.urandom(MEBI)
            sha.update(piece)
            out.write(piece)
    return sha.hexdigest()


def _report(size: int, cuts: int, *, is_whole: bool, took_s: float) -> Report:
    rate = f"{size / MEBI / took_s:.1f} MiB/s"
    row = (f"{size // MEBI} MiB", str(cuts), "yes" if is_whole else "NO", f"{took_s:.0f} s", rate)
    table = Table(
        heading="P7 a long stream, cut again and again",
        columns=("stream", "cuts", "SHA-256 equal here, there and in the store", "took", "rate"),
        rows=[row],
        notes=(f"random bytes; each cut resets every connection for {AWAY_S:g} s",),
    )
    return Report(tables=[table])
