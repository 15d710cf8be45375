"""Connectors: every configured source, alive or failed, under its name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from upright.api import (
    Capabilities,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    Neighbours,
    Receipt,
    Trigger,
)
from upright.core.connector import ConnectorState
from upright.plugin.life import Life, LifeParts, Standing
from upright.plugin.loading import Door, Loaded
from upright.plugin.manifest import Listed
from upright.plugin.reconcile import ReconcileParts, reconcile
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright.settings.shape import SourceSection

log = logging.getLogger(__name__)


class Connectors:
    """All sources. A source that can't be loaded is a ``failed`` row; the rest run."""

    def __init__(
        self, lives: Mapping[str, Life], failed: Mapping[str, Standing], parts: LifeParts
    ) -> None:
        self._lives = lives
        self._failed = failed
        self._parts = parts

    async def run(self, reconciling: ReconcileParts | None = None) -> None:
        """Live until cancelled: one supervised task a source, and one that reconciles it (B2.3)."""
        for standing in self._failed.values():
            await self._parts.report(standing)
        async with asyncio.TaskGroup() as group:
            for name, life in self._lives.items():
                group.create_task(life.run(), name=f"source:{name}")
                if reconciling is not None:
                    group.create_task(reconcile(life, reconciling), name=f"reconcile:{name}")
            await asyncio.Event().wait()

    async def tried(self) -> None:
        """Return once every source has been started, or that went wrong, for the first time."""
        for life in self._lives.values():
            await life.tried()

    def standings(self) -> tuple[Standing, ...]:
        """Return every source's state, by name."""
        alive = {name: life.standing for name, life in self._lives.items()}
        return tuple(standing for _, standing in sorted({**self._failed, **alive}.items()))

    def retry(self, source: str) -> bool:
        """Try a source again now; False when there is nothing to try."""
        life = self._lives.get(source)
        if life is not None:
            life.retry()
        return life is not None

    def capabilities(self, source: str) -> Capabilities | None:
        """Return what a source can do; None when no source has this name."""
        if source in self._failed:
            return Capabilities()
        life = self._lives.get(source)
        return life.capabilities() if life else None

    def health(self, source: str) -> Health:
        """Say how a source's ears are; nothing is known of one that has failed."""
        life = self._lives.get(source)
        return life.health() if life else Health()

    async def neighbours(
        self, source: str, trigger: Trigger, before: int, after: int
    ) -> Neighbours:
        """Return the talk around a trigger of a source; see :meth:`Life.neighbours`."""
        return await self._life(source).neighbours(trigger, before, after)

    async def receive(self, source: str, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse a webhook for a source; see :meth:`Life.receive`."""
        return await self._life(source).receive(request)

    async def send(self, effect: Effect) -> Receipt:
        """Perform an effect by the source of its destination; see :meth:`Life.send`."""
        return await self._life(effect.destination.source).send(effect)

    def _life(self, source: str) -> Life:
        life = self._lives.get(source)
        if life is not None:
            return life
        failed = self._failed.get(source)
        said = f"the source {source} has failed: {failed.reason}" if failed else "no such source"
        raise ConnectorNotReadyError(said)


def open_connectors(
    sources: Mapping[str, SourceSection],
    plugins: Iterable[Listed],
    parts: LifeParts,
    *,
    file: str,
) -> Connectors:
    """Load what *sources* name, and nothing else; *file* is named in what is said to people.

    This imports plugins, so it blocks: before the loop runs, or in a thread.
    """
    loaded = Door().connectors(plugins, {source.connector for source in sources.values()})
    lives: dict[str, Life] = {}
    failed: dict[str, Standing] = {}
    for name, source in sources.items():
        made = _life(name, source, loaded, parts, file=file)
        if isinstance(made, Life):
            lives[name] = made
        else:
            failed[name] = Standing(
                source=name, kind=source.connector, state=ConnectorState.FAILED, reason=made
            )
            log.error("source.failed", extra={"source": name, "why": made})
    return Connectors(lives, failed, parts)


def problems(
    sources: Mapping[str, SourceSection], plugins: Iterable[Listed], *, file: str
) -> dict[str, str]:
    """Say what keeps each source from being loaded; empty when nothing does. Starts nothing."""
    loaded = Door().connectors(plugins, {source.connector for source in sources.values()})
    read = {name: _settings(name, source, loaded, file=file) for name, source in sources.items()}
    return {name: problem for name, (_, problem) in read.items() if problem}


def _life(
    name: str, source: SourceSection, loaded: Loaded, parts: LifeParts, *, file: str
) -> Life | str:
    settings, problem = _settings(name, source, loaded, file=file)
    return problem or Life(name, loaded.types[source.connector], settings, parts)


def _settings(name: str, source: SourceSection, loaded: Loaded, *, file: str) -> tuple[object, str]:
    """Read a source's own keys: (settings, "") or (None, what is wrong)."""
    offered, place = loaded.types.get(source.connector), Place(key=f"sources.{name}", origin=file)
    if offered is None:
        problem = loaded.failures[source.connector]
        return None, str(place.inside("connector").wrong(problem))
    try:
        return parse(offered.settings, source.keys, place), ""
    except SettingsError as error:
        return None, str(error)
