"""Pruner: takes away what is older than it must be kept, a little at a time (A5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from upright.core.retention import Keep, before_ms, pruned_on
from upright.engine.hints import Hint
from upright.engine.units import Units
from upright.store import retention, retention_agents
from upright.store.retention import START, Piece
from upright.store.spill import Spill
from upright.store.unit import Unit

log = logging.getLogger(__name__)

Pass = Callable[[Unit, tuple[int, str]], Piece]
"""One small unit of pruning, from a place on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneTimes:
    """``every_s``: from one look at everything to the next. ``pause_s``: after each commit."""

    every_s: float = 600.0
    pause_s: float = 0.05


class Pruner:
    """One loop over everything that has an age; each commit is small, and others come between."""

    def __init__(self, units: Units, keep: Keep, spill: Spill | None, times: PruneTimes) -> None:
        self._units = units
        self._keep = keep
        self._spill = spill
        self._times = times
        self._hint = Hint()
        self._working = asyncio.Lock()
        self.output_bytes = 0

    def hint(self) -> None:
        """Say that room is needed: look now."""
        self._hint.give()

    async def run(self) -> None:
        """Prune, for ever."""
        while True:
            done = await self.once()
            if any(done.values()):
                log.info("pruner.pruned", extra={"rows": done})
            await self._hint.wait(self._times.every_s)

    async def once(self) -> dict[str, int]:
        """Prune all that is too old now; return how many rows of each kind."""
        done = {name: await self._all(one) for name, one in self._passes().items()}
        done["output over the cap"] = await self._under_the_cap()
        done["pages"] = await self._all(lambda u, _: retention.give_back(u))
        return done

    @asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Prune nothing meanwhile: somebody copies what rows name."""
        async with self._working:
            yield

    def _passes(self) -> dict[str, Pass]:
        keep = self._keep
        return {
            "payloads": partial(_aged, keep.raw, retention.payloads),
            "entries": partial(_aged, keep.transcript, _anywhere(retention.transcripts)),
            "output": partial(_aged, keep.output, _anywhere(retention.output)),
            "events": partial(_aged, keep.events, _anywhere(retention.events)),
            "snapshots": partial(_aged, keep.snapshots, _anywhere(retention.snapshots)),
            "receipts": partial(_aged, keep.receipts, _receipts),
            "ledger": partial(_aged, keep.ledger, _anywhere(retention.ledger)),
            "audit trail": partial(_aged, keep.audit, _anywhere(retention.audit)),
            "memory": partial(_aged, keep.events, _anywhere(retention_agents.memory)),
            "home versions": partial(_aged, keep.transcript, _anywhere(retention_agents.homes)),
            "dedupe keys": partial(_aged, keep.dedupe, retention.dedupe),
        }

    async def _all(self, one: Pass) -> int:
        rows, place = 0, START
        while True:
            piece = await self._piece(one, place)
            rows += piece.rows
            if piece.place is None:
                return rows
            place = piece.place
            await self._units.clock.sleep(self._times.pause_s)

    async def _piece(self, one: Pass, place: tuple[int, str]) -> Piece:
        async with self._working:
            piece = await self._units.write(lambda u: one(u, place))
            if piece.loose and self._spill is not None:
                await drop_loose(self._units, self._spill, piece.loose)
        return piece

    async def _under_the_cap(self) -> int:
        """Prune the oldest output until all of it is under the cap, or what is left is needed."""
        self.output_bytes = await self._units.read(retention.output_size)
        cap, rows = self._keep.output_bytes, 0
        while 0 < cap < self.output_bytes:
            piece = await self._piece(lambda u, _: retention.output(u, None), START)
            if piece.place is None:
                log.warning("pruner.over_the_cap", extra={"bytes": self.output_bytes})
                break
            rows += piece.rows
            self.output_bytes -= piece.size
            await self._units.clock.sleep(self._times.pause_s)
        return rows


async def drop_loose(units: Units, spill: Spill, names: tuple[str, ...]) -> None:
    """Remove those files that no row names any more."""
    async with spill.changing:
        named = await units.read(lambda c: retention.spilled_among(c, names))
        await asyncio.to_thread(spill.drop, set(names) - named)


Aged = Callable[[Unit, int, tuple[int, str]], Piece]


def _aged(days: int, one: Aged, u: Unit, place: tuple[int, str]) -> Piece:
    limit = before_ms(u.now_ms, days)
    return Piece() if limit is None else one(u, limit, place)


def _anywhere(one: Callable[[Unit, int], Piece]) -> Aged:
    """Make a function of one that begins with the oldest each time."""
    return lambda u, limit, _place: one(u, limit)


def _receipts(u: Unit, limit: int, _place: tuple[int, str]) -> Piece:
    return retention.receipts(u, limit, f"its text was {pruned_on(u.now_ms)}")
