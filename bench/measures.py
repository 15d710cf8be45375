"""Measures: what is done with commands, the same for whatever runs them (standard library only)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, Protocol

MEBI: Final = 2**20
SLEEPER: Final = ("sh", "-c", "echo x; exec sleep 2")
SPEAKER: Final = ("sh", "-c", "echo x; exec sleep 0.02")


class Running(Protocol):
    """A command under way."""

    async def first_byte(self) -> None:
        """Wait until a byte of standard output is here."""
        ...

    async def cancel(self) -> None:
        """Ask for its end, as a person would: a TERM."""
        ...

    async def end(self) -> tuple[int, int]:
        """Wait for its end; return how many bytes of stdout and of stderr are here."""
        ...


class Runner(Protocol):
    """Whatever runs commands."""

    async def start(self, argv: Sequence[str]) -> Running:
        """Start a command; it may not run yet when this returns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of each is done in one round."""

    ones: int
    eights: int
    firsts: int
    cancels: int
    stream_bytes: int
    stderr_bytes: int


UNITS: Final = {
    "`true`, one at a time": "/s",
    "`true`, eight at a time": "/s",
    "start to first output byte": "ms",
    "cancel to end": "ms",
    "long stdout": "MiB/s",
    "10 MB of stderr": "ms",
}


async def measure(runner: Runner, load: Load) -> dict[str, float]:
    """Do one round; the names are those of ``UNITS``."""
    await _true(runner)  # what is done once is not what is measured
    ones = await _timed(_trues(runner, load.ones))
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(_trues(runner, load.eights), name="eighth")
    eights = perf_counter() - began
    values = (
        load.ones / ones,
        8 * load.eights / eights,
        1000 * await _first(runner, load.firsts),
        1000 * await _cancel(runner, load.cancels),
        load.stream_bytes / MEBI / await _timed(_long(runner, load.stream_bytes)),
        1000 * await _timed(_stderr(runner, load.stderr_bytes)),
    )
    return dict(zip(UNITS, values, strict=True))


async def _timed(work: Coroutine[object, None, None]) -> float:
    began = perf_counter()
    await work
    return perf_counter() - began


async def _true(runner: Runner) -> None:
    await (await runner.start(["true"])).end()


async def _trues(runner: Runner, times: int) -> None:
    for _ in range(times):
        await _true(runner)


async def _first(runner: Runner, times: int) -> float:
    took = []
    for _ in range(times):
        began = perf_counter()
        running = await runner.start(SPEAKER)
        await running.first_byte()
        took.append(perf_counter() - began)
        await running.end()
    return sorted(took)[times // 2]


async def _cancel(runner: Runner, times: int) -> float:
    took = []
    for _ in range(times):
        running = await runner.start(SLEEPER)
        await running.first_byte()
        began = perf_counter()
        await running.cancel()
        await running.end()
        took.append(perf_counter() - began)
    return sorted(took)[times // 2]


async def _long(runner: Runner, size: int) -> None:
    out, _ = await (await runner.start(["head", "-c", str(size), "/dev/zero"])).end()
    assert out == size, (out, size)


async def _stderr(runner: Runner, size: int) -> None:
    argv = ["sh", "-c", f"exec head -c {size} /dev/zero >&2"]
    _, err = await (await runner.start(argv)).end()
    assert err == size, (err, size)
