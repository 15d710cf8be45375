"""Agents as people see them and make them (B17); fills ``web.parts.Agents``."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from typing import Final

from upright.agent.homes import templates
from upright.agent.homes.mirror import Mirror
from upright.core.home import GUIDE, FileKind, HomeFile, kind_of, skill
from upright.engine.units import Units
from upright.settings.home import Home
from upright.settings.shape import Settings
from upright.store import homes
from upright.store.plain import Plain
from upright.store.unit import Connection

log = logging.getLogger(__name__)

FOLDER: Final = "agents"


class HubAgents:
    """Lists, shows and makes agents, and brings their folders and the store together."""

    def __init__(self, units: Units, mirror: Mirror) -> None:
        self._units = units
        self.mirror = mirror

    async def begin(self) -> None:
        """Have the agents that every hub has, before the first turn; the folders as they can be."""
        await self.mirror.begin()
        try:
            await self.mirror.sync()
        except OSError as error:  # the store has the truth; the folders are tried again
            log.warning("homes.failed", extra={"reason": str(error)})

    async def listed(self) -> object:
        """List agents by name: what each is for, its template, skills, notes and open items."""
        return await self._units.read(lambda c: [_brief(c, one) for one in homes.agents(c)])

    async def show(self, name: str) -> object:
        """Show one agent: its home's files, its guide, its skills, and what it works on.

        Raises:
            UnknownIdError: there is no such agent.
        """

        def query(c: Connection) -> Plain:
            homes.must_exist(c, name)
            (one,) = (each for each in homes.agents(c) if each["name"] == name)
            files = homes.read(c, name)
            skills = [file for file in files if kind_of(file.path) is FileKind.SKILL]
            return {
                **_brief(c, one),
                "folder": str(self.mirror.folder(name)),
                "guide": next((file.text for file in files if file.path == GUIDE), ""),
                "files": [_shown(file) for file in files],
                "catalogue": [
                    {**asdict(skill(file.path, file.text)), "sha256": file.sha256}
                    for file in skills
                ],
                "items": homes.open_items(c, name),
            }

        return await self._units.read(query)

    async def add(self, name: str, template: str) -> object:
        """Make an agent from a template.

        Raises:
            UnknownIdError: there is no such template. InvalidError: that is no name.
            NotNowError: there is an agent of this name.
        """
        files = await asyncio.to_thread(templates.read, template)
        await self._units.write(lambda u: homes.add(u, name, template, files, by="operator"))
        await self.mirror.sync()
        folder = str(self.mirror.folder(name))
        return {"name": name, "template": template, "folder": folder}

    async def sync(self) -> object:
        """Take in what was edited in the folders, and write there what changed in the store."""
        return [asdict(one) for one in await self.mirror.sync()]


def _brief(c: Connection, one: Plain) -> Plain:
    files = homes.read(c, one["name"])
    kinds = [kind_of(file.path) for file in files]
    return {
        **one,
        "role": homes.role(c, one["name"]),
        "skills": kinds.count(FileKind.SKILL),
        "notes": kinds.count(FileKind.NOTE),
        "open_items": len(homes.open_items(c, one["name"])),
    }


def _shown(file: HomeFile) -> Plain:
    return {
        "path": file.path,
        "version": file.version,
        "sha256": file.sha256,
        "by": file.author,
        "trust": file.trust.label,
        "at_ms": file.at_ms,
        "bytes": len(file.text.encode()),
    }


def agents_of(settings: Settings, home: Home, units: Units) -> HubAgents:
    """Make the part, with the agents of the configuration.

    Raises:
        UnknownIdError: a section names a template that there is not.
    """
    wanted = {name: section.template or name for name, section in settings.agents.items()}
    for template in wanted.values():
        templates.read(template)
    every_s = settings.limits.home_sync_s
    return HubAgents(units, Mirror(units, home.folder / FOLDER, wanted, every_s=every_s))
