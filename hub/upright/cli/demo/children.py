"""Children: the demo's processes, each in a group of its own, its output in a file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright.engine.ports import Clock

STOP_S: Final = 12.0
POLL_S: Final = 0.05


class DemoError(Exception):
    """The demo can't go on; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process that was started, and where its output goes."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.returncode is None

    async def output(self) -> str:
        """Return what it has printed so far."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> str:
        """Return the end of its output."""
        return "\n".join(self._read().splitlines()[-15:])


class Children:
    """Starts processes and ends every one of them."""

    def __init__(self, folder: Path, env: Mapping[str, str], clock: Clock) -> None:
        self._folder = folder
        self._env = dict(env)
        self._clock = clock
        self._children: list[Child] = []

    async def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str]) -> Child:
        """Start a process in the background."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._folder,
                env={**self._env, **env},
                start_new_session=True,
            )
        child = Child(name=name, process=process, log=log)
        self._children.append(child)
        return child

    async def run(self, argv: Sequence[str], *, env: Mapping[str, str], within_s: float) -> str:
        """Run a command to its end and return what it printed; DemoError when it fails."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env={**self._env, **env},
        )
        try:
            async with asyncio.timeout(within_s):
                out, err = await process.communicate()
        except TimeoutError as error:
            said = f"`{' '.join(argv[-3:])}` did not end within {within_s:g} s"
            raise DemoError(said) from error
        finally:
            await _end(process)
        if process.returncode != 0:
            said = f"`{' '.join(argv[-3:])}` failed: {err.decode(errors='replace').strip()}"
            raise DemoError(said)
        return out.decode()

    async def ready(self, child: Child, file: Path, *, within_s: float = 30.0) -> str:
        """Wait for the file in which a child says that it is ready; return what it says."""
        until = self._clock.monotonic() + within_s
        while self._clock.monotonic() < until:
            said = await asyncio.to_thread(_read_if_there, file)
            if said:
                return said
            self.check()
            await self._clock.sleep(POLL_S)
        said_so_far = f"{child.name} was not ready within {within_s:g} s:\n{child.last_words()}"
        raise DemoError(said_so_far)

    def check(self) -> None:
        """Raise DemoError when a child has died."""
        for child in self._children:
            if not child.is_alive:
                said = f"{child.name} ended with {child.process.returncode}:\n{child.last_words()}"
                raise DemoError(said)

    async def stop_all(self) -> None:
        """End every child, the last started first: TERM to its group, then KILL."""
        for child in reversed(self._children):
            await self._stop(child)

    async def _stop(self, child: Child) -> None:
        if child.is_alive:
            child.process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await child.process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGKILL)
        await child.process.wait()

    def forget(self, child: Child) -> None:
        """Stop watching a child that was meant to end, and did."""
        if child.is_alive:
            said = f"{child.name} still runs:\n{child.last_words()}"
            raise DemoError(said)
        self._children.remove(child)

    async def pause(self) -> None:
        """Wait a moment between two looks."""
        await self._clock.sleep(POLL_S)

    def left(self, folder: Path) -> list[str]:
        """Name what still runs: in a child's group, or with *folder* on its command line."""
        groups = [child.name for child in self._children if _group_lives(child.process.pid)]
        return [*groups, *_strays(str(folder))]

    def has(self, name: str) -> bool:
        """Say whether a child of this name is watched."""
        return any(child.name == name for child in self._children)

    def named(self, name: str) -> Child:
        """Return the child of this name; KeyError when it isn't watched."""
        return {child.name: child for child in self._children}[name]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process that has not ended: in good order, so that it ends its own, or else by KILL."""
    if process.returncode is not None:
        return
    process.terminate()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()


def _read_if_there(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _strays(folder: str) -> list[str]:
    """Find programs that left our groups, as a command's guardian does; only Linux tells."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            words = file.read_bytes().decode(errors="replace").split("\0")
            if any(folder in word for word in words) and int(file.parent.name) != os.getpid():
                found.append(f"process {file.parent.name} ({words[0]})")
    return found


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
