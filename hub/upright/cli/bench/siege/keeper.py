"""Keeper: the hub as a process that is started, killed, stopped and let go on."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from upright.cli.bench.errors import BenchError
from upright.cli.bench.siege.stage import Stage
from upright.cli.demo.children import Child, DemoError
from upright.cli.demo.stage import PYTHON
from upright.engine.ports import Clock

READY_S: Final = 30.0
STOPS_S: Final = 20.0
LOOK_S: Final = 0.03


@dataclass(slots=True, kw_only=True)
class Keeper:
    """One hub at a time; with ``kills`` the next one stands by, all imports done."""

    stage: Stage
    clock: Clock
    kills: bool
    hub: Child | None = None
    lives: int = 0
    _standby: Child | None = None

    async def start(self) -> None:
        """Let a hub begin; it may not listen yet when this returns."""
        if not self.kills:
            self.hub = await self._spawn("hub", "upright", "serve")
            return
        self.hub = self._standby or await self._stand_by()
        self._go(self.lives).touch()
        self.lives += 1
        self._standby = await self._stand_by()

    async def ready(self) -> None:
        """Wait until the hub takes webhooks.

        Raises:
            BenchError: it ended, or takes too long.
        """
        until = self.clock.monotonic() + READY_S
        while not await self._listens():
            self.check()
            if self.clock.monotonic() > until:
                said = f"the hub was not ready within {READY_S:g} s:\n{self._words()}"
                raise BenchError(said)
            await self.clock.sleep(LOOK_S)

    def check(self) -> None:
        """Raise BenchError when the hub has ended by itself."""
        hub = self._running()
        if not hub.is_alive:
            said = f"the hub ended by itself with {hub.process.returncode}:\n{self._words()}"
            raise BenchError(said)

    async def kill(self) -> None:
        """End the hub by SIGKILL.

        Raises:
            BenchError: it had ended by itself before.
        """
        hub = self._running()
        self.check()
        hub.process.kill()
        await hub.process.wait()
        self.stage.children.forget(hub)
        self.hub = None

    def send(self, number: signal.Signals) -> None:
        """Send the hub a signal: to stop, and to go on."""
        os.kill(self._running().process.pid, number)

    async def stop(self) -> None:
        """Stop the hub in good order, and whoever stands by.

        Raises:
            TimeoutError: it did not stop in time.
        """
        if self._standby is not None:
            self._standby.process.kill()
            await self._standby.process.wait()
            self.stage.children.forget(self._standby)
            self._standby = None
        hub = self._running()
        hub.process.terminate()
        async with asyncio.timeout(STOPS_S):
            await hub.process.wait()
        self.stage.children.forget(hub)
        self.hub = None

    # ------------------------------------------------------------------ inside
    def _running(self) -> Child:
        if self.hub is None:
            raise BenchError("no hub runs")
        return self.hub

    def _words(self) -> str:
        return self._running().last_words()

    def _go(self, number: int) -> Path:
        return self.stage.plan.folder / f"go.{number}"

    async def _stand_by(self) -> Child:
        module = "upright.cli.bench.siege.standby"
        return await self._spawn(f"hub-{self.lives}", module, "--go", str(self._go(self.lives)))

    async def _spawn(self, name: str, *words: str) -> Child:
        return await self.stage.children.start(name, [*PYTHON, *words], env=self.stage.env)

    async def _listens(self) -> bool:
        try:
            await self.stage.hub.get("/readyz")
        except DemoError:
            return False
        return True
