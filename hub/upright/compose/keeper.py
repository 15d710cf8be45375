"""Keeper: what the web asks of stored things as a whole: backups, raw payloads, replays."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from upright.compose.growth import Growth
from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.store import backup, replay, views
from upright.store.address import Address
from upright.store.intake import Policy
from upright.store.unit import Connection

_PREFIX: Final = ".backup-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Fills ``web.parts.Keeper``. ``where`` is the database, ``folder`` where files may be."""

    growth: Growth
    where: Address
    folder: Path
    policy: Callable[[Connection], Policy]
    woken: Callable[[Collection[SessionId]], None]

    @asynccontextmanager
    async def backup(self) -> AsyncIterator[Path]:
        """Make a backup; the file is gone after the block."""
        self.growth.require_room()
        file = Path(await asyncio.to_thread(self._folder)) / "backup.tar"
        try:
            at_ms = now_ms(self.growth.units.clock)
            async with self.growth.pruner.still():
                make = partial(backup.write, self.where, self.growth.spill, file, at_ms=at_ms)
                await asyncio.to_thread(make)
            yield file
        finally:
            await asyncio.to_thread(shutil.rmtree, file.parent, ignore_errors=True)

    def _folder(self) -> str:
        return tempfile.mkdtemp(prefix=_PREFIX, dir=self.folder)

    async def raw(self, payload: str) -> tuple[str, bytes, str]:
        """Return a payload's media type, its bytes, and when it was pruned, if it was."""
        found = await self.growth.units.read(lambda c: views.payload(c, payload))
        body = found.body
        if found.spilled and self.growth.spill is not None:
            body = await asyncio.to_thread(self.growth.spill.read, found.spilled)
        return found.media_type, body, found.pruned

    async def replay(self, *, trigger: str, since_ms: int, limit: int) -> object:
        """Judge stored triggers by today's rules; nothing is changed."""
        return await self.growth.units.read(
            lambda c: replay.replay(
                c, self.policy(c), trigger=trigger, since_ms=since_ms, limit=limit
            )
        )

    async def again(self, trigger: str) -> object:
        """Offer a held trigger to the router."""
        woken = await self.growth.units.write(lambda u: replay.again(u, self.policy(u.c), trigger))
        self.woken([woken])
        return {"trigger": trigger, "offered_to": woken}
