"""Retiring: puts away what the hub has the end of, many at once, while nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from upright_execd.spool.accepted import Receipt
from upright_execd.spool.store import Spool

GATHER_S: Final = 0.25
log: Final = logging.getLogger("upright.execd")


class Retiring:
    """The receipts that are not put away yet, and those that are."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._pending: dict[str, Receipt] = {}
        self._wakes = asyncio.Event()

    def add(self, receipt: Receipt) -> None:
        """Put it away soon: the spool goes, the receipt stays."""
        self._pending[receipt.command_id] = receipt
        self._wakes.set()

    async def find(self, command_id: str) -> Receipt | None:
        """Return the receipt of a command whose end the hub has; None when there is none."""
        pending = self._pending.get(command_id)
        if pending is not None or not self._spool.is_done(command_id):
            return pending
        return await asyncio.to_thread(self._spool.done, command_id)

    async def run(self) -> None:
        """Put away until cancelled; what the disk refuses is tried again with the next."""
        while True:
            await self._wakes.wait()
            await asyncio.sleep(GATHER_S)
            self._wakes.clear()
            taken = tuple(self._pending.values())
            try:
                await asyncio.to_thread(self._spool.retire, taken)
            except OSError as error:
                log.warning("spool.unretired", extra={"why": str(error)})
                continue
            for receipt in taken:
                del self._pending[receipt.command_id]
