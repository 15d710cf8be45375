"""``upright bench siege``: eight clients, many threads, and the hub under kill -9 and worse."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import click

from upright.cli.bench import strays
from upright.cli.bench.siege.chaos import Mode
from upright.cli.bench.siege.report import Report
from upright.cli.bench.siege.run import Run, Wish
from upright.cli.bench.siege.words import Word
from upright.cli.demo.project import new_seed
from upright.engine.clock import SystemClock

MODES: Final = [mode.value for mode in Mode]
WORDS: Final = [word.value for word in Word]


@click.command()
@click.option("--mode", type=click.Choice(MODES), default="kill", show_default=True)
@click.option("--kills", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--threads", type=click.IntRange(1, 200), default=24, show_default=True)
@click.option("--hold", type=float, default=3.0, show_default=True, help="Seconds a blow lasts.")
@click.option("--lease", type=float, default=1.2, show_default=True, help="The hub's lease, in s.")
@click.option("--quiet", type=float, default=120.0, show_default=True, help="Seconds to rest in.")
@click.option("--words", default=",".join(WORDS), show_default=True, help="What workers are asked.")
@click.option("--database-url", default="", help="A new PostgreSQL database (default: SQLite).")
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same words again.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
def siege(**given: object) -> None:
    """Post from many clients while the hub is killed, stopped, starved or cut off; lose nothing."""
    wish = _wish(given)
    folder = Path(tempfile.mkdtemp(prefix="upright-siege-")).resolve()
    report = _run(wish, folder)
    failures = report.all_failures()
    if failures:
        click.echo(f"the logs are in {folder}: {'; '.join(failures)[:2000]}", err=True)
    else:
        shutil.rmtree(folder)
    if given["as_json"]:
        click.echo(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        for line in report.lines():
            click.echo(line)
    if failures:
        raise click.exceptions.Exit(1)


def _wish(given: dict[str, object]) -> Wish:
    mode, url = Mode(str(given["mode"])), str(given["database_url"])
    if (mode is Mode.BACKEND) is not bool(url) and mode in {Mode.BACKEND, Mode.FULL, Mode.LOCKED}:
        says = "needs --database-url" if mode is Mode.BACKEND else "is for SQLite alone"
        message = f"--mode {mode} {says}"
        raise click.UsageError(message)
    words = [word for word in str(given["words"]).split(",") if word]
    if not words or (unknown := set(words) - set(WORDS)):
        message = f"--words are of {', '.join(WORDS)}; not {', '.join(unknown) if words else words}"
        raise click.UsageError(message)
    seed = given["seed"]
    return Wish(
        mode=mode,
        kills=int(str(given["kills"])),
        clients=int(str(given["clients"])),
        threads=int(str(given["threads"])),
        hold_s=float(str(given["hold"])),
        lease_s=float(str(given["lease"])),
        quiet_s=float(str(given["quiet"])),
        words=tuple(Word(word) for word in words),
        url=url,
        seed=new_seed() if seed is None else int(str(seed)),
    )


def _run(wish: Wish, folder: Path) -> Report:
    """Run, and end whatever is left of it."""
    run = Run(wish=wish, folder=folder, clock=SystemClock())
    (folder / "logs").mkdir()
    asyncio.run(_guarded(run))
    left = strays.end(folder)
    if not run.failures:
        run.failures += [f"left running: {name}" for name in left]
    return run.report()


async def _guarded(run: Run) -> None:
    """Run to the end, or until a signal comes; either way every process is ended."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run.run(), name="siege")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, partial(_interrupt, run, task))


def _interrupt(run: Run, task: asyncio.Task[None]) -> None:
    if task.cancel():
        run.failures.append("INTERRUPTED")
