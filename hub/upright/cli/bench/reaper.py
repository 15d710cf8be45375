"""Reaper: kills from outside, at moments that are no commit of the hub's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from upright.cli.bench.doom import Files, Mark, note
from upright.cli.bench.draw import Dice
from upright.cli.bench.stops import MODEL, RUNNING, SPOOL, Place, Victim
from upright.cli.demo.children import DemoError
from upright.cli.demo.project import git
from upright.cli.demo.stage import Stage
from upright.engine.ports import Clock

LOOK_S: Final = 0.02
LOOK_AT_FILE_S: Final = 0.003
SILENCE_S: Final = 1.5
_STATUS: Final = ("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
_FILE_OF: Final = dict(zip(SPOOL, ("spec", "started", "exit"), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaper:
    """Waits for its moment, and kills once."""

    stage: Stage
    hub: Callable[[], int]  # the pid of the hub that runs
    files: Files
    clock: Clock
    dice: Dice

    async def kill(self, place: Place) -> None:
        """Kill at this place, when there is a chance."""
        if place.stop == MODEL:
            await self._call_is_under_way()
            self._kill(place, self.hub(), inside_turn=True)
        elif place.stop == RUNNING:
            await self._in_a_command(place)
        else:
            await self._file_appears(_FILE_OF[place.stop])
            self._kill(place, self.stage.children.named("execd").process.pid)

    def _kill(self, place: Place, *pids: int, inside_turn: bool = False) -> None:
        note(self.files, Mark(place=place, inside_turn=inside_turn, pid=pids[0]))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    # ------------------------------------------------------------------ the model
    async def _call_is_under_way(self) -> None:
        """Have the next call fall silent, and wait until the hub is somewhere within it."""
        model = self.stage.model
        if model is None:
            raise DemoError("the bench needs the scripted model")
        if not (await model.get("/_scripted/stats"))["faults_pending"]:
            chunks = self.dice.below(3)
            fault = {"kind": "silence", "calls": 1, "seconds": SILENCE_S, "after_chunks": chunks}
            await model.post("/_scripted/faults", fault)
        while (await model.get("/_scripted/stats"))["faults_pending"]:
            await self.clock.sleep(LOOK_S)
        await self.clock.sleep(SILENCE_S * self.dice.below(60) / 100)

    # ------------------------------------------------------------------ the device
    @property
    def _commands(self) -> Path:
        return Path(self.stage.env["UPRIGHT_EXECD_HOME"]) / "state" / "commands" / "open"

    async def _file_appears(self, name: str) -> None:
        """Wait until a command that is new gets this file; for the start of its exit see E5.1."""
        seen = set(_names(self._commands))
        while True:
            fresh = [one for one in _names(self._commands) if one not in seen]
            if any((self._commands / one / name).exists() for one in fresh):
                return
            await self.clock.sleep(LOOK_AT_FILE_S)

    async def _in_a_command(self, place: Place) -> None:
        """Kill while the tests run on the device: the daemon, and maybe the command's shim.

        With the shim a command is lost, and the scripted worker begins again: it can do that only
        as long as it has changed nothing.
        """
        is_lost = place.victim is Victim.SHIM
        while True:
            for folder in _running(self._commands):
                if is_lost and not await asyncio.to_thread(_is_untouched, folder):
                    continue
                await self.clock.sleep(self.dice.below(30) / 100)
                shim = _shim_of(folder)
                if shim is not None:
                    execd = self.stage.children.named("execd").process.pid
                    self._kill(place, *((execd, shim) if is_lost else (execd,)))
                    return
            await self.clock.sleep(LOOK_S)


def _names(commands: Path) -> list[str]:
    return [folder.name for folder in commands.iterdir()] if commands.exists() else []


def _running(commands: Path) -> Iterator[Path]:
    """Find test runs that have started and not ended; the newest commands suffice."""
    for name in sorted(_names(commands))[-3:]:
        folder = commands / name
        if (folder / "started").exists() and not (folder / "exit").exists() and _tests(folder):
            yield folder


def _tests(folder: Path) -> bool:
    return "unittest" in _spec(folder).get("argv", ())


def _is_untouched(folder: Path) -> bool:
    """Say whether the command runs in a worktree in which nothing was changed yet."""
    cwd = _spec(folder).get("cwd")
    return cwd is not None and not git(Path(cwd), *_STATUS)


def _spec(folder: Path) -> dict[str, Any]:
    """Return what runs; nothing when the folder is gone already."""
    try:
        spec: dict[str, Any] = json.loads((folder / "spec").read_bytes())["spec"]
    except (FileNotFoundError, ValueError):
        return {}
    return spec


def _shim_of(folder: Path) -> int | None:
    """Return the pid of a command's shim, the parent of the command; None when it is too late."""
    try:
        running = dict(
            line.split("=", 1) for line in (folder / "running").read_text("ascii").splitlines()
        )
        stat = Path(f"/proc/{running['pid']}/stat").read_text("ascii")
    except (OSError, KeyError):
        return None
    parent = int(stat.rpartition(")")[2].split()[1])
    return parent if parent > 1 and not (folder / "exit").exists() else None
