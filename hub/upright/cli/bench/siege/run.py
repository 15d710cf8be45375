"""Run: one siege from its set-up to its verdict."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import click

from upright.cli.bench.draw import Dice
from upright.cli.bench.errors import BenchError
from upright.cli.bench.siege import disk
from upright.cli.bench.siege.chaos import Mode, Siege, strike
from upright.cli.bench.siege.crowd import Client, Tally
from upright.cli.bench.siege.errors import errors_in
from upright.cli.bench.siege.findings import Findings
from upright.cli.bench.siege.keeper import Keeper
from upright.cli.bench.siege.person import Person
from upright.cli.bench.siege.report import Report
from upright.cli.bench.siege.stage import Plan, Stage, comments, set_up
from upright.cli.bench.siege.verdict import Logs, judge
from upright.cli.bench.siege.words import Pen, Word
from upright.cli.demo.children import Children, DemoError
from upright.engine.ports import Clock
from upright.settings.load import environment
from upright.store import audit
from upright.store.errors import StoreUnavailableError
from upright.store.outsider import look

CLOSE_S: Final = 60.0
LOOK_S: Final = 0.5
CALM: Final = 3  # looks in a row that find nothing under way
A_BLOW_S: Final = 90.0
"""A bound for one blow; the whole run is bounded by it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    mode: Mode
    kills: int
    clients: int
    threads: int
    hold_s: float
    lease_s: float
    quiet_s: float
    words: tuple[Word, ...]
    url: str
    seed: int


@dataclass(slots=True, kw_only=True)
class Run:
    """One run; ``failures`` are those of the bench itself."""

    wish: Wish
    folder: Path
    clock: Clock
    skipped: str = ""
    failures: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    tally: Tally = field(default_factory=Tally)
    landed: int = 0
    seconds: float = 0.0

    async def run(self) -> None:
        """Run to the end; every process is ended, also when this is cancelled."""
        began = self.clock.monotonic()
        if self.wish.mode is Mode.FULL and (why := disk.lacks()):
            self.skipped = why
            return
        try:
            async with asyncio.timeout(A_BLOW_S * self.wish.kills + self.wish.quiet_s + 120):
                async with self._stage() as stage:
                    await self._play(stage)
        except* disk.NoDiskError as refused:
            self.skipped = "; ".join(_said(error) for error in _leaves(refused))
        except* (BenchError, DemoError, StoreUnavailableError, OSError) as group:
            self.failures += [_said(error) for error in _leaves(group)]
        finally:
            self.seconds = self.clock.monotonic() - began

    def report(self) -> Report:
        """Return what came of it."""
        return Report(
            mode=self.wish.mode.value,
            database="PostgreSQL" if self.wish.url else "SQLite",
            seed=self.wish.seed,
            seconds=self.seconds,
            kills=self.wish.kills,
            landed=self.landed,
            answers=self.tally.answers,
            errors=errors_in(self.folder / "logs"),
            findings=self.findings,
            failures=tuple(self.failures),
            skipped=self.skipped,
        )

    # ------------------------------------------------------------------ the parts
    @asynccontextmanager
    async def _stage(self) -> AsyncIterator[Stage]:
        ours = ("UPRIGHT_", "OPENAI_")
        env = {name: said for name, said in environment().items() if not name.startswith(ours)}
        children = Children(self.folder / "logs", env, self.clock)
        plan = Plan(
            folder=self.folder,
            threads=self.wish.threads,
            url=self.wish.url,
            lease_s=self.wish.lease_s,
            spare_bytes=1 if self.wish.mode is Mode.FULL else None,
        )
        async with AsyncExitStack() as undo:
            if self.wish.mode is Mode.FULL:
                await undo.enter_async_context(disk.small_disk(plan.state))
                undo.push_async_callback(asyncio.to_thread, self._save, plan)
            undo.push_async_callback(children.stop_all)
            connector = aiohttp.TCPConnector(limit=0)
            session = await undo.enter_async_context(aiohttp.ClientSession(connector=connector))
            yield await set_up(plan, children, session)

    def _save(self, plan: Plan) -> None:
        """Keep what stands on a disk that goes away, when it will be looked at."""
        if self.failures or self.findings.all():
            shutil.copytree(plan.state, self.folder / "state-kept")

    @property
    def _logs(self) -> Logs:
        numbers = range(self.wish.clients)
        clients = tuple(self.folder / f"client-{number}.log" for number in numbers)
        return Logs(clients=clients, person=self.folder / "person.log")

    def _client(self, stage: Stage, number: int, closing: asyncio.Event) -> Client:
        wish = self.wish
        dice = Dice(wish.seed * 1000 + number)
        pen = Pen(client=number, threads=wish.threads, words=wish.words, dice=dice)
        return Client(
            door=stage.door,
            pen=pen,
            log=self._logs.clients[number],
            clock=self.clock,
            tally=self.tally,
            closing=closing,
        )

    # ------------------------------------------------------------------ the play
    async def _play(self, stage: Stage) -> None:
        keeper = Keeper(stage=stage, clock=self.clock, kills=self.wish.mode is Mode.KILL)
        await keeper.start()
        await keeper.ready()
        closing = asyncio.Event()
        person = Person(hub=stage.hub, log=self._logs.person, clock=self.clock)
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(person.run(), name="person")
            clients = [
                group.create_task(self._client(stage, n, closing).run(), name=f"client {n}")
                for n in range(self.wish.clients)
            ]
            await self._strike(keeper)
            closing.set()
            async with asyncio.timeout(CLOSE_S):
                await asyncio.wait(clients)
            await self._rest(keeper)
            answering.cancel()
        await keeper.stop()
        await judge(stage.plan.where, self._logs, await comments(stage), self.findings)

    async def _strike(self, keeper: Keeper) -> None:
        siege = Siege(
            keeper=keeper,
            tally=self.tally,
            findings=self.findings,
            clock=self.clock,
            dice=Dice(self.wish.seed),
            hold_s=self.wish.hold_s,
        )
        try:
            await strike(siege, self.wish.mode, self.wish.kills)
        finally:
            self.landed = siege.landed
            _progress(f"{siege.landed} of {self.wish.kills} landed")

    async def _rest(self, keeper: Keeper) -> None:
        """Let what is under way come to rest; what does not, in time, is stuck."""
        where, calm, left = keeper.stage.plan.where, 0, list[str]()
        until = self.clock.monotonic() + self.wish.quiet_s
        while calm < CALM and self.clock.monotonic() < until:
            keeper.check()
            with suppress(StoreUnavailableError):  # the database is on its way back, too
                left = await look(where, audit.restless)
                calm = 0 if left else calm + 1
            await self.clock.sleep(LOOK_S)
        if calm < CALM:
            rest = f"after {self.wish.quiet_s:g} s of quiet"
            self.findings.stuck += [f"{one} {rest}" for one in left] or [f"no rest {rest}"]


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        click.echo(line, err=True)


def _said(error: Exception) -> str:
    return str(error) or f"something took too long ({type(error).__name__})"


def _leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
