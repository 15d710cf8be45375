"""Person: answers every question and approves every reply that is asked for, by the hub's API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from upright.cli.bench.siege.crowd import Journal
from upright.cli.demo.children import DemoError
from upright.cli.demo.client import Web
from upright.cli.demo.stage import listed
from upright.engine.ports import Clock

LOOK_S: Final = 0.3
GO_ON: Final = "Go on, please."


@dataclass(slots=True, kw_only=True)
class Person:
    """Looks again and again until cancelled; what was answered is in the log, synced."""

    hub: Web
    log: Path
    clock: Clock
    answered: int = 0

    async def run(self) -> None:
        """Answer what is asked; a hub that is down is asked later."""
        journal = Journal(self.log)
        try:
            while True:
                await self._look(journal)
                await self.clock.sleep(LOOK_S)
        finally:
            journal.close()

    async def _look(self, journal: Journal) -> None:
        try:
            for asked in listed(await self.hub.get("/v1/requests")):
                await self._answer(asked)
                journal.write([asked["id"]])
                self.answered += 1
        except DemoError:
            pass  # it is down, or the question was settled meanwhile: the next look says

    async def _answer(self, asked: dict[str, Any]) -> None:
        if asked["kind"] == "approval":
            seen = f"/v1/requests/{asked['id']}/approve?digest={asked['digest']}"
            await self.hub.post(seen, {})
        else:
            await self.hub.post(f"/v1/requests/{asked['id']}/answer", {"text": GO_ON})
