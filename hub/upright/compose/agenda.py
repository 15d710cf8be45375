"""Agenda: asks every source that keeps a calendar what takes up time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from upright.api import Appointment, ConnectorError
from upright.core.agenda import Agenda, merged
from upright.engine.ports import AgendaQuestion

log = logging.getLogger(__name__)

PATIENCE_S: Final = 8.0


class Calendars(Protocol):
    """The connectors, as far as an agenda needs them; ``plugin.connectors.Connectors`` is one."""

    def with_agenda(self) -> tuple[str, ...]:
        """Return the sources that keep an agenda."""
        ...

    async def agenda(self, source: str, since: datetime, until: datetime) -> Sequence[Appointment]:
        """Return what takes up time; ConnectorNotReadyError when the source can't tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAgenda:
    """Implements ``engine.ports.AgendaTeller``."""

    connectors: Calendars
    patience_s: float = PATIENCE_S

    async def __call__(self, question: AgendaQuestion) -> Agenda:
        """Ask all of them at once; whoever is away or too slow is named as silent."""
        async with asyncio.TaskGroup() as group:
            asked = [
                (source, group.create_task(self._ask(source, question), name=f"agenda:{source}"))
                for source in self.connectors.with_agenda()
            ]
        return merged([(source, task.result()) for source, task in asked])

    async def _ask(self, source: str, question: AgendaQuestion) -> tuple[Appointment, ...] | None:
        try:
            async with asyncio.timeout(self.patience_s):
                found = await self.connectors.agenda(source, question.since, question.until)
        except (ConnectorError, TimeoutError) as error:
            why = str(error) or f"no answer within {self.patience_s:g} s"
            log.warning("agenda.not_told", extra={"source": source, "why": why})
            return None
        return tuple(found)
