"""Intake: triggers from webhooks and connectors go in by one door; hints follow the commit."""

from __future__ import annotations

from collections.abc import Sequence

from upright.api import Trigger
from upright.engine.embedded import EmbeddedEngine
from upright.engine.units import Units
from upright.store import intake, sources
from upright.store.intake import Accepted, Policy
from upright.store.unit import Unit


class Intake:
    """Takes triggers in for the web and for connectors; hints follow the commit."""

    def __init__(self, units: Units, engine: EmbeddedEngine, policy: Policy) -> None:
        self._units = units
        self._engine = engine
        self._policy = policy

    async def accept(self, source: str, triggers: Sequence[Trigger]) -> Sequence[Accepted]:
        """Store what a source brought; return after the commit."""
        return await self._store(source, triggers, None)

    async def emit(self, source: str, triggers: Sequence[Trigger], cursor: str | None) -> None:
        """Store triggers and the cursor that covers them, in one transaction (B1.6)."""
        await self._store(source, triggers, cursor)

    async def _store(
        self, source: str, triggers: Sequence[Trigger], cursor: str | None
    ) -> list[Accepted]:
        def unit(u: Unit) -> list[Accepted]:
            sources.heard(u, source)
            return intake.accept(u, source, triggers, self._policy, cursor=cursor)

        accepted = await self._units.write(unit)
        self._engine.hint([session for one in accepted for session in one.woke])
        return accepted
