"""Intake: triggers from webhooks and connectors go in by one door; hints follow the commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from upright.api import Trigger
from upright.compose.growth import Growth
from upright.engine.embedded import EmbeddedEngine
from upright.engine.units import Units
from upright.store import intake, sources
from upright.store.intake import Accepted, Policy
from upright.store.unit import Unit

HEARD_MS: Final = 1000
"""How exactly it is stored when a source was last heard: not anew with each of a storm."""


class Intake:
    """Takes triggers in for the web and for connectors; hints follow the commit."""

    def __init__(
        self, units: Units, engine: EmbeddedEngine, policy: Policy, growth: Growth
    ) -> None:
        self._growth = growth
        self._units = units
        self._engine = engine
        self._policy = policy
        self._heard_ms: dict[str, int] = {}

    @property
    def policy(self) -> Policy:
        """What the next trigger is judged by."""
        return self._policy

    async def accept(self, source: str, triggers: Sequence[Trigger]) -> Sequence[Accepted]:
        """Store what a source brought; return after the commit."""
        return await self._store(source, triggers, None)

    async def emit(self, source: str, triggers: Sequence[Trigger], cursor: str | None) -> None:
        """Store triggers and the cursor that covers them, in one transaction (B1.6)."""
        await self._store(source, triggers, cursor)

    async def _store(
        self, source: str, triggers: Sequence[Trigger], cursor: str | None
    ) -> list[Accepted]:
        def unit(u: Unit) -> tuple[list[Accepted], int]:
            heard_ms = self._heard_ms.get(source, 0)
            if u.now_ms - heard_ms >= HEARD_MS:
                sources.heard(u, source)
                heard_ms = u.now_ms
            return intake.accept(u, source, triggers, self._policy, cursor=cursor), heard_ms

        self._growth.require_room()
        raws = [trigger.raw for trigger in triggers]
        async with self._growth.spilled(raws, self._policy.spill_bytes):
            accepted, self._heard_ms[source] = await self._units.write(unit)
        self._engine.hint([session for one in accepted for session in one.sooner])
        return accepted
