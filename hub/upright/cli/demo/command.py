"""``upright demo``: sets everything up, plays the story, checks it, and cleans up."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import click

from upright.cli.demo import project as repository
from upright.cli.demo.checks import Verdict, judge
from upright.cli.demo.children import Children, DemoError
from upright.cli.demo.figures import measure
from upright.cli.demo.people.act import People, prepare
from upright.cli.demo.people.drawn import cast
from upright.cli.demo.people.servers import Ground, start
from upright.cli.demo.project import draw, new_seed
from upright.cli.demo.speaker import Speaker
from upright.cli.demo.stage import PYTHON, Plan, Sabotage, Stage, dismiss, listed, set_up
from upright.cli.demo.story import Patience, Scene, play
from upright.engine.clock import SystemClock
from upright.settings.load import environment

SCRIPTED: Final = Patience(fix_s=40.0, end_s=12.0)
REAL: Final = Patience(fix_s=1200.0, end_s=300.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line."""

    seed: int
    keep: bool
    as_json: bool
    sabotage: Sabotage | None
    scene: SceneName
    servers: str


class SceneName(StrEnum):
    """How far the demo goes: a red CI run turned green, and then mail, calendar and chat."""

    CI = "ci"
    PEOPLE = "people"


@click.command()
@click.option("--seed", type=click.IntRange(min=0), help="Draw this run again.")
@click.option("--keep", is_flag=True, help="Leave everything running, and say where.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option(
    "--sabotage",
    type=click.Choice([one.value for one in Sabotage]),
    help="Break it on purpose: the demo must notice.",
)
@click.option(
    "--scene",
    type=click.Choice([one.value for one in SceneName]),
    default=SceneName.CI.value,
    show_default=True,
    help="`people` goes on after the red run: a question in chat, an invitation by mail.",
)
@click.option(
    "--servers",
    default="",
    metavar="FOLDER",
    help="An environment with the mail and calendar servers of the scene `people`.",
)
def demo(
    *, seed: int | None, keep: bool, as_json: bool, sabotage: str | None, scene: str, servers: str
) -> None:
    """Watch a red CI run turn green, all on this machine."""
    wish = Wish(
        seed=new_seed() if seed is None else seed,
        keep=keep,
        as_json=as_json,
        sabotage=Sabotage(sabotage) if sabotage else None,
        scene=SceneName(scene),
        servers=servers,
    )
    folder = Path(tempfile.mkdtemp(prefix="upright-demo-")).resolve()
    (folder / "logs").mkdir()
    run = asyncio.run(_run(wish, environment(), folder))
    _clean_up(run)  # not before the threads are done, which may still write there
    if wish.as_json:
        click.echo(json.dumps(run.result(), ensure_ascii=False))
    if run.failures:
        raise click.exceptions.Exit(1)


async def _run(wish: Wish, env: Mapping[str, str], folder: Path) -> _Run:
    """Play until the end, or until a signal comes; either way end every process."""
    clock = SystemClock()
    speaker = Speaker(clock, lambda line: click.echo(line, err=wish.as_json), clock.monotonic())
    children = Children(folder / "logs", env, clock)
    run = _Run(wish=wish, env=env, speaker=speaker, folder=folder, children=children)
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.TaskGroup() as group:
                playing = group.create_task(_play(run, session), name="demo")
                _on_signals(partial(run.interrupt, playing))
        finally:
            await _end(run)
    return run


def _on_signals(act: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act)


async def _play(run: _Run, session: aiohttp.ClientSession) -> None:
    try:
        await run.play(session)
    except* (DemoError, TimeoutError) as group:
        for error in group.exceptions:
            run.failures.append(str(error) or "something took too long")
            run.speaker.step(f"gave up: {run.failures[-1]}")


async def _end(run: _Run) -> None:
    """End every process, and look whether that worked."""
    if run.stage is not None:
        await dismiss(run.stage)
    await run.children.stop_all()
    left = await asyncio.to_thread(run.children.left, run.folder)
    run.speaker.check("no process is left", ok=not left, detail=", ".join(left))
    run.failures.extend(f"a process is left: {name}" for name in left)


def _clean_up(run: _Run) -> None:
    failed = "; ".join(run.failures)
    if run.failures and not run.interrupted:
        run.speaker.say(f"FAILED (seed {run.wish.seed}): {failed}")
        run.speaker.say(f"The logs are in {run.folder / 'logs'}")
        return
    shutil.rmtree(run.folder)
    ending = failed or "DONE"
    run.speaker.say(f"{ending} in {run.speaker.now_s():.1f} s (seed {run.wish.seed})")


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run of the demo, and what came of it."""

    wish: Wish
    env: Mapping[str, str]
    speaker: Speaker
    folder: Path
    children: Children
    failures: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    stage: Stage | None = None
    interrupted: bool = False

    def interrupt(self, playing: asyncio.Task[None]) -> None:
        """Stop the play: a signal came. Once that is over, further ones change nothing."""
        if playing.cancel():
            self.interrupted = True
            self.failures.append("INTERRUPTED")

    async def play(self, session: aiohttp.ClientSession) -> None:
        """Set the stage, play the story, judge it, and show why it went so."""
        drawn = draw(self.wish.seed)
        self.speaker.step(f"seed {drawn.seed}: {drawn.bug.name} in {drawn.bug.path}")
        stays_red = self.wish.sabotage is Sabotage.STAYS_RED
        project = await asyncio.to_thread(repository.make, self.folder, drawn, stays_red=stays_red)
        plan = Plan(
            folder=self.folder,
            project=project,
            environment=self.env,
            sabotage=self.wish.sabotage,
        )
        people = await self._people(session)
        plan = people.planned(plan) if people else plan
        stage = self.stage = await set_up(plan, self.children, session, self.speaker)
        self.speaker.note("set_up")
        scene = Scene(
            stage=stage,
            drawn=drawn,
            project=project,
            folder=self.folder,
            speaker=self.speaker,
            sabotage=self.wish.sabotage,
            patience=REAL if plan.has_real_model else SCRIPTED,
        )
        await self._tell(scene, people)

    async def _people(self, session: aiohttp.ClientSession) -> People | None:
        if self.wish.scene is SceneName.CI:
            return None
        free = self.wish.sabotage is Sabotage.NO_CONFLICT
        who = cast(self.wish.seed, self.speaker.clock.now(), free=free)
        self.speaker.step("mail, calendar and chat servers start")
        ground = Ground(
            folder=self.folder,
            children=self.children,
            session=session,
            environment=self.wish.servers,
        )
        servers = await start(ground, who)
        await prepare(servers, who, self.speaker.clock.now())
        return People(servers=servers, cast=who)

    async def _tell(self, scene: Scene, people: People | None) -> None:
        outcome = await play(scene)
        self.speaker.say("Checked from outside:")
        self.verdicts = await judge(scene, outcome)
        gave_up = outcome.gave_up
        if people and not gave_up:
            verdicts, gave_up = await people.play(scene, outcome)
            self.verdicts += verdicts
        self.failures = [one.name for one in self.verdicts if not one.ok]
        if gave_up:
            self.failures.append(gave_up)
        await self._explain(scene.stage)
        if self.wish.keep:
            await self._keep(scene.stage)

    async def _explain(self, stage: Stage) -> None:
        """Print the path of the trigger that began it, as `upright why` shows it."""
        inbox = listed(await stage.hub.get("/v1/inbox?limit=100"))
        started = [one["id"] for one in inbox if one["kind"] == "ci.failed"]
        if started:
            self.figures = measure(await stage.hub.get(f"/v1/why/{started[-1]}"))
            argv = [*PYTHON, "upright", "why", started[-1]]
            self.speaker.say(await self.children.run(argv, env=stage.env, within_s=20.0))

    async def _keep(self, stage: Stage) -> None:
        """Leave everything running until a signal comes."""
        stop = asyncio.Event()
        _on_signals(stop.set)
        self.speaker.say(f"It runs on at {stage.hub.base}. For the command line:")
        for name in ("UPRIGHT_HOME", "UPRIGHT_EXECD_HOME"):
            self.speaker.say(f"  export {name}={stage.env[name]}")
        self.speaker.say("Ctrl-C ends it.")
        await stop.wait()

    def result(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "ok": not self.failures,
            "seed": self.wish.seed,
            "failures": self.failures,
            "checks": [asdict(one) for one in self.verdicts],
            "figures": {
                **self.figures,
                "set_up_s": self.speaker.times.get("set_up", 0.0),
                "whole_s": round(self.speaker.now_s(), 3),
            },
            "times": {**self.speaker.times, "whole": round(self.speaker.now_s(), 3)},
        }
