"""Mirror: homes in the store and their folders on disk, brought to say the same (B17.1).

What the owner changed in a folder becomes a version in the store; what changed in the store is
written to the folder. Where both changed, the folder's text holds, the store's stays as a version
and is laid beside it: nothing is lost, and it is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from upright.agent.homes import disk
from upright.agent.homes.disk import Found
from upright.agent.homes.templates import BUILT_IN, read
from upright.core.errors import CoreError
from upright.core.home import HomeFile, Move, move
from upright.core.mandate import Trust
from upright.engine.units import Units
from upright.store import homes
from upright.store.errors import NotNowError, StoreUnavailableError
from upright.store.homes import Writing, digest
from upright.store.unit import Unit

log = logging.getLogger(__name__)

OWNER: Final = "owner"
"""The author of what was edited in the folder."""


@dataclass(slots=True, kw_only=True)
class Synced:
    """What was done for one agent: paths each; ``refused`` has the reason by path."""

    agent: str
    taken_in: list[str] = field(default_factory=list)
    laid_out: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def is_news(self) -> bool:
        """Whether anything moved."""
        moved = (self.taken_in, self.laid_out, self.forgotten, self.removed, self.conflicts)
        return any(moved)


class Mirror:
    """Keeps folders below *root*, one an agent, in step with the store."""

    def __init__(
        self, units: Units, root: Path, wanted: Mapping[str, str], *, every_s: float = 30.0
    ) -> None:
        self._units = units
        self._root = root
        self._wanted = {**{name: name for name in BUILT_IN}, **wanted}
        self._every_s = every_s
        self._working = asyncio.Lock()

    def folder(self, agent: str) -> Path:
        """Return where an agent's home is."""
        return self._root / agent

    async def run(self) -> None:
        """Look at all folders again and again."""
        while True:
            try:
                await self.sync()
            except (OSError, CoreError, StoreUnavailableError) as error:
                log.warning("homes.failed", extra={"reason": str(error)})
            await self._units.clock.sleep(self._every_s)

    async def begin(self) -> None:
        """Make the agents that every hub has, and those of the configuration, once each."""
        given = {one: await asyncio.to_thread(read, one) for one in set(self._wanted.values())}

        def unit(u: Unit) -> None:
            for name, template in sorted(self._wanted.items()):
                if not homes.exists(u.c, name):
                    homes.add(u, name, template, given[template], by="configuration")

        await self._units.write(unit)

    async def sync(self) -> list[Synced]:
        """Bring every home and its folder to say the same; return what was done.

        A folder that can't be read or written is refused, and holds up no other.
        """
        async with self._working:
            await self.begin()
            known = await self._units.read(homes.agents)
            return [await self._tried(one["name"]) for one in known]

    async def _tried(self, agent: str) -> Synced:
        try:
            return await self._sync(agent)
        except OSError as error:
            log.warning("home.failed", extra={"agent": agent, "reason": str(error)})
            return Synced(agent=agent, refused={".": error.strerror or type(error).__name__})

    async def _sync(self, agent: str) -> Synced:
        folder = self.folder(agent)
        found = await asyncio.to_thread(disk.scan, folder)
        if "." in found.refused:
            return _told(Synced(agent=agent, refused=dict(found.refused)))
        settled = await self._units.write(lambda u: _settle(u, agent, found))
        await asyncio.to_thread(_apply, folder, settled)
        return _told(settled.done)


def _told(done: Synced) -> Synced:
    if done.conflicts:
        log.warning("home.conflict", extra={"agent": done.agent, "paths": done.conflicts})
    return done


@dataclass(slots=True, kw_only=True)
class _Settling:
    """Brings the store up to date with a folder; ``write`` … is what the folder is told then."""

    u: Unit
    agent: str
    found: Found
    stored: dict[str, HomeFile]
    done: Synced
    write: dict[str, str] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    base: dict[str, str] = field(default_factory=dict)

    def all(self) -> _Settling:
        """Decide about each file."""
        found = self.found
        for path in sorted({*self.stored, *found.texts, *found.base}):
            if not any(path == one or path.startswith(f"{one}/") for one in found.refused):
                self._one(path)
        return self

    def _one(self, path: str) -> None:
        text, file = self.found.texts.get(path), self.stored.get(path)
        on_disk = None if text is None else digest(text)
        in_store = None if file is None else file.sha256
        match move(self.found.base.get(path), on_disk, in_store):
            case Move.NOTHING:
                self._same(path, on_disk)
            case Move.TAKE_IN | Move.CONFLICT if text is not None:
                self._take_in(path, text, file)
            case Move.FORGET:
                homes.delete(self.u, self.agent, path, by=OWNER)
                self.done.forgotten.append(path)
            case Move.REMOVE:
                self.remove.append(path)
                self.done.removed.append(path)
            case _:
                self.write[path] = file.text if file else ""
                self.done.laid_out.append(path)
                self._same(path, in_store)

    def _same(self, path: str, sha256: str | None) -> None:
        if sha256 is not None:
            self.base[path] = sha256

    def _take_in(self, path: str, text: str, file: HomeFile | None) -> None:
        """Store what the owner wrote; where the store had changed, too, its text goes beside."""
        writing = Writing(path=path, text=text, author=OWNER, trust=Trust.OPERATOR)
        try:
            homes.write(self.u, self.agent, writing)
        except (CoreError, NotNowError) as error:
            self.done.refused[path] = str(error)
            return
        self.done.taken_in.append(path)
        self._same(path, digest(text))
        if file is not None and file.sha256 != self.found.base.get(path):
            self.done.conflicts.append(path)
            self.write[f"{path}{disk.BESIDE}{file.version}"] = file.text


def _settle(u: Unit, agent: str, found: Found) -> _Settling:
    stored = {file.path: file for file in homes.read(u.c, agent)}
    done = Synced(agent=agent, refused=dict(found.refused))
    return _Settling(u=u, agent=agent, found=found, stored=stored, done=done).all()


def _apply(folder: Path, settled: _Settling) -> None:
    """Write to the folder what the store knows better; the manifest last.

    What was edited since it was looked at is left alone: the next look sees both sides.
    """
    known = settled.found.texts
    for path, text in settled.write.items():
        if disk.is_as_seen(folder / path, known.get(path)):
            disk.lay_out(folder, path, text)
        else:
            settled.base.pop(path, None)
    for path in settled.remove:
        if disk.is_as_seen(folder / path, known.get(path)):
            disk.remove(folder, path)
    if settled.base != settled.found.base:
        disk.write_manifest(folder, settled.base)
