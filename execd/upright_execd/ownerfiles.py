"""Owner's files: execd.toml, the workspaces and the rules, read anew when one of them changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from upright_execd import argvrules, settings, workspace
from upright_execd.audit import Audit
from upright_execd.errors import ExecdError
from upright_execd.house import OwnerRules
from upright_execd.paths import Paths
from upright_execd.settings import Mode, Settings

LOOK_EVERY_S: Final = 2.0

Signature = tuple[tuple[int, int, int] | None, ...]


def read(paths: Paths) -> OwnerRules:
    """Read all files; a broken one switches the mode to OFF and is told as the problem. Blocks."""
    try:
        return OwnerRules(
            settings=settings.load(paths.settings),
            workspaces=workspace.listed(paths.workspaces),
            argv_rules=argvrules.listed(paths.rules),
        )
    except (ExecdError, OSError) as error:
        closed = Settings(mode=Mode.OFF)
        return OwnerRules(settings=closed, workspaces=(), problem=str(error))


class OwnerFiles:
    """The rules in force. Only the owner's own files change them, never a message of the hub."""

    def __init__(
        self, paths: Paths, audit: Audit, on_change: Callable[[OwnerRules, OwnerRules], None]
    ) -> None:
        self._paths, self._audit, self._on_change = paths, audit, on_change
        self._signature = _signature(paths)
        self._wakes = asyncio.Event()
        self.rules = read(paths)

    async def run(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await self._nudged()
            signature = await asyncio.to_thread(_signature, self._paths)
            if signature != self._signature:
                self._signature = signature
                before, self.rules = self.rules, await asyncio.to_thread(read, self._paths)
                await asyncio.to_thread(
                    self._audit.write,
                    "rules.changed",
                    mode=self.rules.settings.mode,
                    workspaces=[str(workspace.path) for workspace in self.rules.workspaces],
                    argv_rules=len(self.rules.argv_rules),
                    problem=self.rules.problem,
                )
                self._on_change(before, self.rules)

    def nudge(self) -> None:
        """Look now."""
        self._wakes.set()

    async def _nudged(self) -> None:
        try:
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._wakes.wait()
        except TimeoutError:
            return
        self._wakes.clear()


def _signature(paths: Paths) -> Signature:
    """Return what changes when a file is written, replaced, made, deleted, or given away."""
    found: list[tuple[int, int, int] | None] = []
    for path in (paths.settings, paths.workspaces, paths.rules):
        try:
            stat = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_ino, stat.st_ctime_ns, stat.st_size))  # chmod counts, too
    return tuple(found)
