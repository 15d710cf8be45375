"""``upright bench kill``: kills the hub and the daemon in mid-work, and looks what was lost."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import click

from upright.cli.bench import strays
from upright.cli.bench.draw import Dice, Tally
from upright.cli.bench.errors import BenchError
from upright.cli.bench.load import Load, Pattern
from upright.cli.bench.report import Report
from upright.cli.bench.rig import CONFIG, RULES, Rig, database
from upright.cli.bench.stops import places
from upright.cli.bench.story import StuckError, Teller
from upright.cli.bench.verdict import Findings, judge, look
from upright.cli.demo import project as repository
from upright.cli.demo.children import Children, DemoError
from upright.cli.demo.speaker import Speaker
from upright.cli.demo.stage import REPOSITORY, Plan, Stage, set_up
from upright.engine.clock import SystemClock
from upright.engine.ports import Clock
from upright.settings.load import environment
from upright.store.opening import open_storage

STORY_S: Final = 180.0
MOST_STORIES: Final = 20
TARGETS: Final = ("hub", "execd", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    kills: int
    seed: int
    target: str


@click.command()
@click.option(
    "--kills", type=click.IntRange(min=1), default=30, show_default=True, help="How many."
)
@click.option("--seed", type=click.IntRange(min=0), help="Draw these kills again.")
@click.option("--target", type=click.Choice(TARGETS), default="both", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def kill(kills: int, seed: int | None, target: str, as_json: bool) -> None:
    """Kill hub and execd at every stop, until N kills have landed; nothing may be lost by it."""
    wish = Wish(kills=kills, seed=repository.new_seed() if seed is None else seed, target=target)
    folder = Path(tempfile.mkdtemp(prefix="upright-kill-")).resolve()
    (folder / "logs").mkdir()
    run = Run(wish=wish, folder=folder, clock=SystemClock())
    report = asyncio.run(run.run())
    failures = [*report.failures(), *run.failures]
    if failures:
        click.echo(f"the logs are in {folder}", err=True)
    else:
        shutil.rmtree(folder)
    if as_json:
        click.echo(json.dumps({**report.as_json(), "failures": failures}, ensure_ascii=False))
    else:
        for line in (*report.lines(), *(f"FAILED: {one}" for one in run.failures)):
            click.echo(line)
    if failures:
        raise click.exceptions.Exit(1)


@dataclass(slots=True, kw_only=True)
class Run:
    """One run; ``failures`` are those of the bench itself."""

    wish: Wish
    folder: Path
    clock: Clock
    failures: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    stories: int = 0
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(wanted=self.wish.kills, places=places(self.wish.target))

    async def run(self) -> Report:
        """Run to the end, or until a signal comes; either way end every process."""
        began = self.clock.monotonic()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._guarded(), name="bench")
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, partial(self._interrupt, task))
        return Report(
            seed=self.wish.seed,
            seconds=self.clock.monotonic() - began,
            stories=self.stories,
            tally=self.tally,
            findings=self.findings,
        )

    def _interrupt(self, task: asyncio.Task[None]) -> None:
        if task.cancel():
            self.failures.append("INTERRUPTED")

    async def _guarded(self) -> None:
        try:
            async with self._stage() as rig:
                await self._play(rig)
        except* (BenchError, DemoError, TimeoutError) as group:
            self.failures += [str(error) or "something took too long" for error in _leaves(group)]

    @asynccontextmanager
    async def _stage(self) -> AsyncIterator[Rig]:
        """Set up what the demo sets up; at the end nothing is left of it."""
        env = {
            name: value
            for name, value in environment().items()
            if not name.startswith(("UPRIGHT_", "OPENAI_"))
        }
        drawn = repository.draw(self.wish.seed)
        project = await asyncio.to_thread(repository.make, self.folder, drawn, stays_red=False)
        plan = Plan(
            folder=self.folder, project=project, environment=env, config=CONFIG, rules=RULES
        )
        children = Children(self.folder / "logs", env, self.clock)
        speaker = Speaker(self.clock, _say, self.clock.monotonic())
        try:
            async with aiohttp.ClientSession() as session:
                stage = await set_up(plan, children, session, speaker)
                body = {"full_name": REPOSITORY, "clone_url": str(project.remote)}
                await stage.github.post("/_sandbox/repos", body)
                yield Rig(
                    plan=plan,
                    stage=stage,
                    clock=self.clock,
                    tally=self.tally,
                    dice=Dice(self.wish.seed),
                    told=partial(_progress, self.clock, self.clock.monotonic()),
                )
        finally:
            await self._end(children)

    async def _end(self, children: Children) -> None:
        """End every process; what is left of a run that went well is a finding."""
        await children.stop_all()
        left = await asyncio.to_thread(strays.end, self.folder)
        if not self.failures and not self.findings.stuck:
            self.failures += [f"left running: {name}" for name in left]

    # ------------------------------------------------------------------ the play
    async def _play(self, rig: Rig) -> None:
        teller = Teller(rig=rig, within_s=STORY_S)
        pattern = await _pattern(rig.stage)
        load = Load(
            session=rig.stage.hub.session,
            url=f"{rig.stage.hub.base}/hooks/github",
            secret=rig.stage.env["DEMO_WEBHOOK_SECRET"],
            pattern=pattern,
            log=self.folder / "acknowledged.log",
            clock=self.clock,
            dice=Dice(self.wish.seed + 1),
        )
        async with asyncio.TaskGroup() as group:
            kept = group.create_task(rig.kept(), name="kept")
            loading = group.create_task(load.run(), name="load")
            await rig.entered.wait()
            await self._tell(teller)
            loading.cancel()
            kept.cancel()
        await self._settle(rig)
        await self._judge(rig)

    async def _tell(self, teller: Teller) -> None:
        """Tell stories until all kills have landed; the last one is told to its end, too."""
        while self.tally.left:
            if self.stories > MOST_STORIES + self.wish.kills:
                return  # what is left does not land, and the report says so
            try:
                pull = await teller.tell(self.wish.seed + 1 + self.stories)
            except StuckError as error:
                self.findings.stuck.append(str(error))
                return
            self.stories += 1
            await judge(pull, teller.rig.stage.github, self.findings)

    async def _settle(self, rig: Rig) -> None:
        """Let what is under way come to rest, then stop the hub in good order."""
        await rig.stop_hub()

    async def _judge(self, rig: Rig) -> None:
        store = await open_storage(database(rig.plan), lambda: 0.5)
        try:
            await look(store, self.folder / "acknowledged.log", self.findings)
        finally:
            await store.close()


async def _pattern(stage: Stage) -> Pattern:
    """Have a stranger comment once on another pull request, and take what GitHub sent for it."""
    issues = f"/_sandbox/repos/{REPOSITORY}/issues"
    opened = await stage.github.post(issues, {"title": "Nobody's", "author": "passer-by"})
    said = {"body": "Any news?", "author": "passer-by"}
    told = await stage.github.post(f"{issues}/{opened['number']}/comments", said)
    await stage.github.post("/_sandbox/settle", {})
    delivery = await stage.github.get(f"/_sandbox/deliveries/{told['deliveries'][0]}")
    return Pattern(headers=delivery["headers"], body=json.loads(delivery["body"]))


def _leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _say(line: str) -> None:
    click.echo(line, err=True)


def _progress(clock: Clock, began: float, tally: Tally) -> None:
    """Say how far it is: over and over on one line of a terminal, else once in ten kills."""
    seconds = clock.monotonic() - began
    line = (
        f"[{seconds:6.1f} s] {tally.landed} of {tally.wanted} kills, {len(tally.missed())} to meet"
    )
    if sys.stderr.isatty():
        click.echo(f"\r{line}", err=True, nl=not tally.left)
    elif tally.landed % 10 == 0:
        click.echo(line, err=True)
