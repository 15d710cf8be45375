"""Talk: asks the source that a trigger came from what was said around it (C0)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from upright.api import Capabilities, ConnectorError, Message, Neighbours, Trigger
from upright.compose.intake import Intake
from upright.core.talk import Around, near
from upright.engine.ports import TalkQuestion
from upright.engine.units import Units
from upright.store.intake import Policy

log = logging.getLogger(__name__)

PATIENCE_S: Final = 8.0


class Histories(Protocol):
    """The connectors, as far as talk needs them; ``plugin.connectors.Connectors`` is one."""

    def capabilities(self, source: str) -> Capabilities | None:
        """Return what a source can do; None when no source has this name."""
        ...

    async def neighbours(
        self, source: str, trigger: Trigger, before: int, after: int
    ) -> Neighbours:
        """Return the talk around a trigger; ConnectorNotReadyError when the service can't tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTalk:
    """Implements ``engine.ports.Talk``; ``policy`` returns what is known of people now."""

    connectors: Histories
    policy: Callable[[], Awaitable[Policy]]
    patience_s: float = PATIENCE_S

    async def __call__(self, question: TalkQuestion) -> Around | None:
        """Ask the service; None when it has no history, is away, or takes too long."""
        source, asked = question.trigger.source, question
        able = self.connectors.capabilities(source)
        if able is None or not able.neighbours:
            return None
        try:
            async with asyncio.timeout(self.patience_s):
                found = await self.connectors.neighbours(
                    source, asked.trigger.trigger, asked.before, asked.after
                )
        except (ConnectorError, TimeoutError) as error:
            why = str(error) or f"no answer within {self.patience_s:g} s"
            log.warning("talk.not_told", extra={"source": source, "why": why})
            return None
        people = (await self.policy()).people
        return Around(
            before=near(source, _last(found.before, asked.before), people),
            after=near(source, found.after[: asked.after], people),
            whole=found.whole,
            told_by="service",
        )


def talk_of(connectors: Histories, units: Units, intake: Intake) -> HubTalk:
    """Make it of a hub's parts."""
    return HubTalk(connectors=connectors, policy=lambda: units.read(intake.policy))


def _last(messages: tuple[Message, ...], most: int) -> tuple[Message, ...]:
    """Return the last so many: a connector may say more than it was asked."""
    return messages[max(0, len(messages) - most) :]
