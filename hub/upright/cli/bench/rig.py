"""Rig: the demo's stage, whose hub and daemon are killed and started again for ever."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from upright.cli.bench.doom import Files, marks, write_dooms
from upright.cli.bench.draw import Dice, Draw, Drawn, Tally
from upright.cli.bench.errors import BenchError
from upright.cli.bench.reaper import Reaper
from upright.cli.bench.stops import Victim
from upright.cli.demo.children import Child, Children
from upright.cli.demo.stage import PYTHON, Plan, Stage
from upright.engine.ports import Clock

STOPS_S: Final = 15.0
MOST_A_STORY: Final = 12  # then it is left alone, so that it has an end;
MORE_AT_ITS_END: Final = 3  # but what only its end brings, and no kill has met, may still come
CONFIG: Final = """
[limits]
inline_wait_s = 1.0
lease_s = 1.2
sweep_s = 0.25
outbox_base_s = 0.1
outbox_cap_s = 0.5
connector_base_s = 0.1
events_poll_s = 0.5
"""
RULES: Final = (
    'mode = "allow"\nfirst_redial_ms = 50\nmost_redial_ms = 200\n'
    'environment_base = "own"\nas_root = true\n'
)


@dataclass(slots=True, kw_only=True)
class Rig:
    """Hub and daemon as processes that come back; ``kept`` runs until it is cancelled."""

    plan: Plan
    stage: Stage
    clock: Clock
    tally: Tally
    dice: Dice
    told: Callable[[Tally], None]
    shim_killed: bool = False
    hub: Child | None = None
    _mode: Victim = Victim.HUB
    _draw: Draw = field(init=False)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    _group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _watch: asyncio.Task[None] | None = None
    _counted: int = 0
    _landed_before: int = 0
    _lives: int = 0

    def __post_init__(self) -> None:
        self._draw = Draw(self.tally, self.dice)

    @property
    def files(self) -> Files:
        """Where dooms and kills are noted."""
        return Files(folder=self.plan.folder)

    @property
    def children(self) -> Children:
        """All processes."""
        return self.stage.children

    # ------------------------------------------------------------------ the processes
    async def kept(self) -> None:
        """Take over hub and daemon from the set-up, and start them again whenever they die.

        A story may begin once ``entered`` is set: what kills from outside is a task beside these.
        """
        await self._stop(self.children.named("hub"))
        async with self._group as group:
            self.entered.set()
            group.create_task(self._keep_hub(), name="keep hub")
            group.create_task(self._keep_execd(), name="keep execd")

    async def _keep_hub(self) -> None:
        standby = await self._stand_by(0)
        for number in count(1):
            if self._mode is Victim.HUB:
                self.redraw()
            self.hub = standby
            self.files.go(number - 1).touch()
            standby = await self._stand_by(number)
            await self._ended(self.hub)

    async def _stand_by(self, number: int) -> Child:
        """Start the next hub: it imports all that it needs, and waits for its turn."""
        port = str(urlsplit(self.stage.hub.base).port)
        words = ("--port", port, "--folder", str(self.plan.folder), "--number", str(number))
        argv = [*PYTHON, "upright.cli.bench.doomed", *words]
        return await self.children.start(f"hub-{number}", argv, env=self.stage.env)

    async def _keep_execd(self) -> None:
        child = self.children.named("execd")
        env = {"UPRIGHT_EXECD_HOME": self.stage.env["UPRIGHT_EXECD_HOME"]}
        while True:
            self.files.execd.write_text(str(child.process.pid), encoding="ascii")
            if self._mode is Victim.EXECD:
                self.redraw()
            await self._ended(child)
            argv = [*PYTHON, "upright_execd", "run"]
            child = await self.children.start("execd", argv, env=env)

    async def _ended(self, child: Child) -> None:
        """Wait for a process's end, which must be a kill of ours, and count that."""
        code = await child.process.wait()
        self.children.forget(child)
        if code != -signal.SIGKILL:
            said = f"{child.name} ended by itself with {code}:\n{child.last_words()}"
            raise BenchError(said)
        self._lives += 1
        child.log.rename(child.log.with_suffix(f".{self._lives}.log"))
        self._count()

    def _count(self) -> None:
        found = marks(self.files)
        for mark in found[self._counted :]:
            self.tally.add(mark)
            self.shim_killed |= mark.place.victim is Victim.SHIM
        self._counted = len(found)
        self.told(self.tally)

    async def stop_hub(self) -> None:
        """Stop the hub in good order."""
        if self.hub is not None:
            await self._stop(self.hub)

    async def _stop(self, child: Child) -> None:
        child.process.terminate()
        async with asyncio.timeout(STOPS_S):
            await child.process.wait()
        self.children.forget(child)

    def _hub_pid(self) -> int:
        return self.hub.process.pid if self.hub is not None else 0

    # ------------------------------------------------------------------ what dies next
    def begin(self) -> None:
        """Begin a story: choose who is killed during it."""
        self._mode, self.shim_killed = self._draw.mode(), False
        self._landed_before = self.tally.landed
        self.redraw()

    def redraw(self) -> None:
        """Put the next dooms in place of those that were left."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        here = self.tally.landed - self._landed_before
        drawn = Drawn()
        if here < MOST_A_STORY:
            drawn = self._draw.next(self._mode, is_late=here >= MOST_A_STORY / 2)
        elif here < MOST_A_STORY + MORE_AT_ITS_END:
            drawn = self._draw.unmet(self._mode)
        write_dooms(self.files, list(drawn.dooms))
        if drawn.outside is not None:
            reaper = Reaper(
                stage=self.stage,
                hub=self._hub_pid,
                files=self.files,
                clock=self.clock,
                dice=self.dice,
            )
            self._watch = self._group.create_task(reaper.kill(drawn.outside), name="reaper")


def database(plan: Plan) -> Path:
    """Return the hub's database."""
    return plan.folder / "hub" / "upright.db"
