"""Growth: what keeps a hub's files bounded: pruning, spilled payloads, an eye on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from upright.engine.disk import Disk, DiskParts
from upright.engine.pruner import Pruner, PruneTimes, drop_loose
from upright.engine.units import Units
from upright.settings.home import Home
from upright.settings.shape import Settings
from upright.store import retention
from upright.store.spill import Spill, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The parts; on PostgreSQL there is no ``spill`` and no ``disk``: its rows are elsewhere."""

    units: Units
    pruner: Pruner
    spill: Spill | None
    disk: Disk | None

    @property
    def full(self) -> bool:
        """Whether the disk has too little room to begin anything."""
        return self.disk is not None and self.disk.full

    def require_room(self) -> None:
        """Refuse to take anything in while the disk is nearly full.

        Raises:
            DiskFullError: it is.
        """
        if self.disk is not None:
            self.disk.require_room()

    async def begin(self) -> None:
        """Look at the disk, and remove the files that a dead hub's lost commits had written."""
        if self.disk is not None:
            await self.disk.look()
        if self.spill is not None:
            named = await self.units.read(retention.spilled)
            await asyncio.to_thread(self.spill.sweep, named)

    @asynccontextmanager
    async def spilled(self, raws: Sequence[bytes], above_bytes: int) -> AsyncIterator[None]:
        """Have the large ones on disk before the block's commit names them.

        What the commit did not name, a duplicate's say, is removed afterwards.
        """
        large = [raw for raw in raws if 0 < above_bytes < len(raw)]
        if not large or self.spill is None:
            yield
            return
        names = tuple({digest(raw) for raw in large})
        try:
            async with self.spill.changing:
                for raw in large:
                    await asyncio.to_thread(self.spill.keep, raw)
                yield
        finally:
            await drop_loose(self.units, self.spill, names)

    def services(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return what runs all the time, by name."""
        disk = {} if self.disk is None else {"disk": self.disk.run}
        return {"pruner": self.pruner.run, **disk}

    async def gauges(self) -> Mapping[str, float]:
        """Return the samples for Prometheus."""
        free = {} if self.disk is None else {"upright_disk_free_bytes": self.disk.free_bytes}
        return {
            "upright_output_bytes": float(self.pruner.output_bytes),
            "upright_disk_full": float(self.full),
            **free,
        }

    def unready(self) -> Mapping[str, str]:
        """Say that nothing is taken in while the disk is full."""
        return {"disk": "it is nearly full: nothing new is taken in"} if self.full else {}


def growth(settings: Settings, home: Home, units: Units) -> Growth:
    """Make the parts for these settings."""
    limits, on_disk = settings.limits, not settings.database.url
    spill = Spill(home.spill) if on_disk else None
    times = PruneTimes(every_s=limits.prune_s)
    pruner = Pruner(units, settings.retention.keep(), spill, times)
    parts = DiskParts(
        folder=settings.database_path.parent,
        least_bytes=limits.disk_free_bytes,
        every_s=limits.sweep_s,
        clock=units.clock,
        filling=pruner.hint,
    )
    return Growth(units=units, pruner=pruner, spill=spill, disk=Disk(parts) if on_disk else None)
