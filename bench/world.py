"""World: what every bench is given: a folder, processes that are ended, peers, a PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

from bench.payloads import API_VARIABLE, KEY_VARIABLE, SIGNING_KEY
from bench.peers import ROOT, Peers
from bench.postgres import Server, serving
from upright.cli.demo.children import Child, Children
from upright.engine.clock import SystemClock
from upright.settings.load import environment

T = TypeVar("T")
Json = Any  # what our own programs print
OURS: Final = ("UPRIGHT_", "OPENAI_")
START_S: Final = 30.0
SOURCE: Final = f"""\
[sources.github]
connector = "github"
secret = "env:{KEY_VARIABLE}"
token = "env:{API_VARIABLE}"
bot_login = "upright-bot"
api_url = "http://127.0.0.1:9"
"""


def clean_environment() -> dict[str, str]:
    """Return the environment for processes, without what would change a hub or a device."""
    env = {name: value for name, value in environment().items() if not name.startswith(OURS)}
    keys = {KEY_VARIABLE: SIGNING_KEY, API_VARIABLE: "a token for benches"}
    return {**env, **keys, "PYTHONPATH": str(ROOT)}


@dataclass(slots=True, kw_only=True)
class World:
    """``quick`` is for smoke: everything runs once, shortly, and nothing is installed."""

    quick: bool
    folder: Path
    children: Children
    peers: Peers
    clock: SystemClock
    undo: contextlib.ExitStack
    _server: Server | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def pick(self, whole: T, quick: T) -> T:
        """Return one or the other."""
        return quick if self.quick else whole

    def place(self, name: str) -> Path:
        """Make a folder of its own."""
        folder = self.folder / f"{name}-{next(self._numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    # -------------------------------------------------------------- databases
    def postgres(self) -> str:
        """Make an empty database on a server with full durability; return its address. Blocks."""
        if self._server is None:
            self._server = self.undo.enter_context(serving())
        return self._server.make(f"bench{next(self._numbers)}")

    # -------------------------------------------------------------- processes
    def program(self, name: str, *, of_peers: bool) -> list[str]:
        """Return how one of our programs is started, in our environment or in the peers'."""
        python = self.peers.python if of_peers else sys.executable
        return [python, "-m", f"bench.programs.{name}"]

    async def start(self, name: str, argv: Sequence[str], ready: Path) -> tuple[Child, str]:
        """Start a server; return it, and what it says when it is ready."""
        child = await self.children.start(name, argv, env={})
        return child, await self.children.ready(child, ready, within_s=START_S)

    async def end(self, child: Child) -> None:
        """End a process before the bench does; it must stop in order."""
        child.process.terminate()
        async with asyncio.timeout(START_S):
            await child.process.wait()
        self.children.forget(child)

    async def ask(self, argv: Sequence[str], *, within_s: float = 120.0) -> Json:
        """Run a program that prints one JSON value."""
        return json.loads(await self.children.run(argv, env={}, within_s=within_s))

    async def hub(self, config: str) -> Hub:
        """Start ``upright serve`` with a new home."""
        hub, _ = await self.timed_hub(config)
        return hub

    async def timed_hub(self, config: str) -> tuple[Hub, float]:
        """Start ``upright serve`` with a new home; say how many seconds it took to listen."""
        home = self.place("hub")
        named = {"UPRIGHT_HOME": str(home)}
        upright = [sys.executable, "-m", "upright"]
        await self.children.run([*upright, "init"], env=named, within_s=START_S)
        text = f"[hub]\nport = 0\n{config}"
        (home / "upright.toml").write_text(text, encoding="utf-8")
        began = perf_counter()
        child = await self.children.start(home.name, [*upright, "serve"], env=named)
        said = json.loads(await self.children.ready(child, home / "hub.json", within_s=START_S))
        return Hub(url=said["url"], child=child), perf_counter() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A running hub, as a process."""

    url: str
    child: Child


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="upright-bench-")).resolve()
    (folder / "logs").mkdir()
    return folder


@contextlib.asynccontextmanager
async def opened(peers: Peers, *, quick: bool) -> AsyncIterator[World]:
    """Make a world; at the end every process is ended, and its folder is gone."""
    folder = await asyncio.to_thread(_folder)
    clock = SystemClock()
    children = Children(folder / "logs", clean_environment(), clock)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            yield World(
                quick=quick, folder=folder, children=children, peers=peers, clock=clock, undo=undo
            )
        finally:
            await children.stop_all()
