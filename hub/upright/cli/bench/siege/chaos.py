"""Chaos: what is done to the hub, again and again, while the clients post."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from upright.cli.bench.draw import Dice
from upright.cli.bench.errors import BenchError
from upright.cli.bench.siege import whole
from upright.cli.bench.siege.crowd import Tally
from upright.cli.bench.siege.disk import Ballast
from upright.cli.bench.siege.findings import Findings
from upright.cli.bench.siege.keeper import Keeper
from upright.cli.bench.siege.locker import locked
from upright.cli.bench.siege.postgres import crash_one, terminate_all
from upright.engine.ports import Clock

MEAN_S: Final = 2.0
LEAST: Final = 10  # acknowledged between two blows, so that there is something to lose
SILENT_S: Final = 60.0  # longer without an acknowledgement is a finding
EARLY_ONE_IN: Final = 8  # kills during the recovery from the last one
EARLY_S: Final = 1.5
CUTS: Final = 12
"""How often a blow against PostgreSQL's backends is repeated, one right after the other."""


class Mode(StrEnum):
    """What goes wrong."""

    KILL = "kill"
    STOP = "stop"
    FULL = "full"
    LOCKED = "locked"
    BACKEND = "backend"


@dataclass(slots=True, kw_only=True)
class Siege:
    """What every mode works with; ``hold_s`` is how long a blow lasts, ``landed`` counts them."""

    keeper: Keeper
    tally: Tally
    findings: Findings
    clock: Clock
    dice: Dice
    hold_s: float
    landed: int = 0

    async def pause(self) -> None:
        """Wait an exponential time, and until enough was acknowledged since.

        Raises:
            BenchError: nothing was acknowledged for too long, or the hub has ended by itself.
        """
        before, began = self.tally.acknowledged, self.clock.monotonic()
        await self.clock.sleep(exponential_s(self.dice, MEAN_S))
        while self.tally.acknowledged - before < LEAST:
            self.keeper.check()
            if self.clock.monotonic() - began > SILENT_S:
                said = f"nothing was acknowledged for {SILENT_S:g} s: {dict(self.tally.answers)}"
                self.findings.stuck.append(said)
                raise BenchError(said)
            await self.clock.sleep(0.02)

    async def check(self) -> None:
        """Check the database as it stands."""
        plan = self.keeper.stage.plan
        await whole.check(plan.where, plan.folder / "scratch", self.findings)


def exponential_s(dice: Dice, mean_s: float) -> float:
    """Draw how long to wait, so that each moment is as likely as any other."""
    return -mean_s * math.log(1.0 - dice.below(1 << 20) / (1 << 20))


async def _kill(siege: Siege) -> None:
    """Kill the hub; now and then in the middle of its recovery."""
    if siege.landed and siege.dice.below(EARLY_ONE_IN) == 0:
        await siege.clock.sleep(EARLY_S * siege.dice.below(100) / 100)
    else:
        await siege.pause()
    await siege.keeper.kill()
    await siege.check()
    siege.landed += 1
    await siege.keeper.start()


async def _stop(siege: Siege) -> None:
    """Stop the hub for longer than its leases, then let it go on: a zombie with old claims."""
    await siege.pause()
    siege.keeper.send(signal.SIGSTOP)
    try:
        await siege.clock.sleep(siege.hold_s)
    finally:
        siege.keeper.send(signal.SIGCONT)
    siege.landed += 1


async def _full(siege: Siege) -> None:
    """Fill the hub's disk for a while, then free it; the hub must go on by itself."""
    await siege.pause()
    ballast = Ballast(siege.keeper.stage.plan.state)
    try:
        until = siege.clock.monotonic() + siege.hold_s
        while siege.clock.monotonic() < until:  # what the hub frees meanwhile is taken, too
            await asyncio.to_thread(ballast.fill)
            await siege.clock.sleep(0.1)
    finally:
        await asyncio.to_thread(ballast.free)
    siege.landed += 1
    await siege.pause()
    await siege.check()


async def _locked(siege: Siege) -> None:
    """Have another process hold the write lock, in spite of the hub's guard."""
    await siege.pause()
    plan, how = siege.keeper.stage.plan, ("IMMEDIATE", "EXCLUSIVE")[siege.dice.below(2)]
    await locked(plan.state / "upright.db", how, siege.hold_s)
    siege.landed += 1


async def _backend(siege: Siege) -> None:
    """End all of the hub's backends again and again; every third time one by SIGKILL."""
    await siege.pause()
    where = siege.keeper.stage.plan.where
    if siege.landed % 3 == 2:
        siege.findings.cut += await crash_one(where, siege.dice, siege.clock)
        await siege.check()
    else:
        for _ in range(CUTS):
            siege.findings.cut += await terminate_all(where)
            await siege.clock.sleep(exponential_s(siege.dice, siege.hold_s / CUTS))
    siege.landed += 1


BLOWS: Final[Mapping[Mode, Callable[[Siege], Awaitable[None]]]] = MappingProxyType(
    {
        Mode.KILL: _kill,
        Mode.STOP: _stop,
        Mode.FULL: _full,
        Mode.LOCKED: _locked,
        Mode.BACKEND: _backend,
    }
)


async def strike(siege: Siege, mode: Mode, times: int) -> None:
    """Deal so many blows; the hub is up when this returns.

    Raises:
        BenchError: the hub ended by itself, or is silent for too long.
    """
    while siege.landed < times:
        await BLOWS[mode](siege)
    await siege.keeper.ready()
