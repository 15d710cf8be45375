"""Context: what a connector is given when it starts; it sees the hub through nothing else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Final

from upright.api import ConnectorAuthFailedError, Secret, SecretRef, Trigger
from upright.engine.ports import Clock
from upright.settings.errors import SecretMissingError

LOOK_EVERY_S: Final = 30.0

Emit = Callable[[str, Sequence[Trigger], str | None], Awaitable[None]]
"""``emit(source, triggers, cursor)``: one transaction (B1.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What all connectors of a hub share; filled in compose."""

    clock: Clock
    emit: Emit
    cursor: Callable[[str], Awaitable[str | None]]


class Context:
    """One connector's :class:`upright.api.ConnectorContext`; its secrets were read beforehand."""

    def __init__(
        self,
        source: str,
        world: World,
        secrets: Mapping[SecretRef, Secret | SecretMissingError],
    ) -> None:
        self._source = source
        self._world = world
        self._secrets = secrets
        self._log = logging.getLogger(f"upright.source.{source}")

    @property
    def source(self) -> str:
        """The name of the configured source."""
        return self._source

    @property
    def log(self) -> logging.Logger:
        """A logger of this source."""
        return self._log

    def now(self) -> datetime:
        """Return the time, aware, UTC."""
        return self._world.clock.now()

    def secret(self, reference: SecretRef) -> Secret:
        """Return a secret of this source's settings.

        Raises:
            ConnectorAuthFailedError: it couldn't be read, or stands in no setting.
        """
        found = self._secrets.get(reference)
        if isinstance(found, Secret):
            return found
        said = str(found) if found else f"{reference.reference} stands in no setting of this source"
        raise ConnectorAuthFailedError(said)

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        """Store triggers, and the cursor that covers them, in one transaction."""
        await self._world.emit(self._source, triggers, cursor)

    async def cursor(self) -> str | None:
        """Return the stored cursor."""
        return await self._world.cursor(self._source)

    async def sleep(self, seconds: float) -> None:
        """Wait, by the hub's clock."""
        await self._world.clock.sleep(seconds)

    async def sleep_until(self, at: datetime) -> None:
        """Wait until the wall clock shows *at*; it is looked at often, since it may jump."""
        while (left_s := (at - self.now()).total_seconds()) > 0:
            await self._world.clock.sleep(min(left_s, LOOK_EVERY_S))


def references(settings: object) -> Iterator[SecretRef]:
    """Yield every secret reference that a source's settings hold, however deep."""
    if isinstance(settings, SecretRef):
        yield settings
    elif is_dataclass(settings):
        for each in fields(settings):
            yield from references(getattr(settings, each.name))
    elif isinstance(settings, tuple | list | frozenset):
        for item in settings:
            yield from references(item)
    elif isinstance(settings, Mapping):
        yield from references(tuple(settings.values()))
