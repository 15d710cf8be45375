"""Devices: whom they serve, what they are called, where items go; fills ``web.parts.Machines``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from upright.core.ids import SessionId
from upright.engine.units import Units
from upright.store import placing, work
from upright.web.parts import RefusedError

MAX_NAME: Final = 100


class HubMachines:
    """Every command returns after its commit."""

    def __init__(self, units: Units, woken: Callable[[Collection[SessionId]], None]) -> None:
        self._units = units
        self._woken = woken

    async def share(self, device: str, person: str) -> object:
        """Let a device run a person's items."""
        _check(person)
        self._woken(await self._units.write(lambda u: placing.share(u, device, person)))
        return {"device": device, "person": person, "shared": True}

    async def unshare(self, device: str, person: str) -> object:
        """Run none of a person's items any more."""
        if not await self._units.write(lambda u: placing.unshare(u, device, person)):
            reason = f"{device} is not shared with {person}"
            raise RefusedError(reason)
        return {"device": device, "person": person, "shared": False}

    async def rename(self, device: str, name: str) -> object:
        """Call a device something else."""
        _check(name)
        await self._units.write(lambda u: placing.rename(u, device, name))
        return {"device": device, "name": name}

    async def move(self, item: str, device: str) -> object:
        """Let an item go on at another device."""
        woken = await self._units.write(lambda u: placing.move(u, work.read(u.c, item), device))
        self._woken(woken)
        return {"work": item, "device": device, "moved": True}


def _check(name: str) -> None:
    """Refuse what is no name.

    Raises:
        RefusedError: it is too long, or can't be shown.
    """
    if len(name) > MAX_NAME or not name.isprintable():
        reason = f"a name has at most {MAX_NAME} characters that can be shown"
        raise RefusedError(reason)
