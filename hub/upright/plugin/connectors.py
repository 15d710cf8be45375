"""Connectors: every configured source, alive or failed, under its name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from upright.api import (
    Appointment,
    Capabilities,
    ConnectorNotReadyError,
    Effect,
    Health,
    InboundRequest,
    Neighbours,
    Probe,
    Receipt,
    Trigger,
)
from upright.core.connector import ConnectorState
from upright.plugin.life import DeadLetters, Life, LifeParts, Standing
from upright.plugin.loading import Door, Loaded
from upright.plugin.manifest import Listed
from upright.plugin.reconcile import ReconcileParts, reconcile
from upright.plugin.remarks import Remarks
from upright.settings.errors import SettingsError
from upright.settings.parse import Place, parse
from upright.settings.shape import SourceSection

log = logging.getLogger(__name__)

DISABLED: Final = "disabled in the configuration"


class Connectors:
    """All sources. What can't be loaded is ``failed``, what is disabled ``paused``; others run."""

    def __init__(
        self, lives: Mapping[str, Life], still: Mapping[str, Standing], parts: LifeParts
    ) -> None:
        self._lives = lives
        self._still = still
        self._parts = parts
        self._remarks = Remarks(lives)

    async def run(self, reconciling: ReconcileParts | None = None) -> None:
        """Live until cancelled: one supervised task a source, and one that reconciles it (B2.3)."""
        for standing in self._still.values():
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
        return tuple(standing for _, standing in sorted({**self._still, **alive}.items()))

    def retry(self, source: str) -> bool:
        """Try a source again now; False when there is nothing to try."""
        life = self._lives.get(source)
        if life is not None:
            life.retry()
        return life is not None

    def capabilities(self, source: str) -> Capabilities | None:
        """Return what a source can do; None when no source has this name."""
        if source in self._still:
            return Capabilities()
        life = self._lives.get(source)
        return life.capabilities() if life else None

    async def remarked(self, source: str, triggers: Sequence[Trigger]) -> Sequence[Trigger]:
        """Return a source's triggers with what the others know of them."""
        return await self._remarks(source, triggers)

    def health(self, source: str) -> Health:
        """Say how a source's ears are; nothing is known of one that has failed."""
        life = self._lives.get(source)
        return life.health() if life else Health()

    def dead(self, source: str) -> DeadLetters:
        """Count the requests that broke a source's connector, since the hub was started."""
        life = self._lives.get(source)
        return life.dead if life else DeadLetters()

    async def validate(self, source: str) -> Probe | None:
        """Look live whether a source could work; None when no source has this name."""
        life = self._lives.get(source)
        if life is not None:
            return await life.validate()
        still = self._still.get(source)
        return Probe(ok=False, summary=f"{still.state.value}: {still.reason}") if still else None

    async def neighbours(
        self, source: str, trigger: Trigger, before: int, after: int
    ) -> Neighbours:
        """Return the talk around a trigger of a source; see :meth:`Life.asked`."""
        life = self._life(source)
        return await life.asked("neighbours", lambda it: it.neighbours(trigger, before, after))

    def with_agenda(self) -> tuple[str, ...]:
        """Return the sources that keep an agenda, by name."""
        return tuple(name for name, life in self._lives.items() if life.capabilities().agenda)

    async def agenda(self, source: str, since: datetime, until: datetime) -> Sequence[Appointment]:
        """Return what takes up time in a source's calendars; see :meth:`Life.asked`."""
        return await self._life(source).asked("agenda", lambda it: it.agenda(since, until))

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
        still = self._still.get(source)
        said = f"the source {source} is {still.state.value}: {still.reason}" if still else ""
        raise ConnectorNotReadyError(said or "no such source")


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
    loaded = Door().connectors(plugins, _wanted(sources))
    lives: dict[str, Life] = {}
    still: dict[str, Standing] = {}
    for name, source in sources.items():
        if not source.enabled:
            still[name] = _at_rest(name, source, ConnectorState.PAUSED, DISABLED)
            continue
        made = _life(name, source, loaded, parts, file=file)
        if isinstance(made, Life):
            lives[name] = made
        else:
            still[name] = _at_rest(name, source, ConnectorState.FAILED, made)
            log.error("source.failed", extra={"source": name, "why": made})
    return Connectors(lives, still, parts)


def _wanted(sources: Mapping[str, SourceSection]) -> set[str]:
    """Return the kinds to load: those of enabled sources."""
    return {source.connector for source in sources.values() if source.enabled}


def _at_rest(name: str, source: SourceSection, state: ConnectorState, why: str) -> Standing:
    return Standing(source=name, kind=source.connector, state=state, reason=why)


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


def vouches(connectors: Connectors, source: str) -> bool:
    """Say whether people may answer by what they type in a source."""
    able = connectors.capabilities(source)
    return able is not None and able.answers


def declared(
    sources: Mapping[str, SourceSection], plugins: Iterable[Listed], *, file: str
) -> dict[str, Capabilities]:
    """Return what each enabled source that can be loaded will be able to do. Starts nothing."""
    loaded = Door().connectors(plugins, _wanted(sources))
    found = dict[str, Capabilities]()
    for name, source in sources.items():
        settings, problem = _settings(name, source, loaded, file=file)
        if source.enabled and not problem:
            found[name] = loaded.types[source.connector].make(name, settings).capabilities()
    return found
