"""Quiet: a connector that lists nothing, takes no requests and has no history, until it says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from upright.api import Connector, InboundRequest, Neighbours, Trigger, TriggerRejectedError


class Quiet(Connector):
    """Inherit from it, and write only what your service has."""

    async def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield nothing: what was missed is found by the cursor, or can't be asked for."""
        del since, until
        nothing: tuple[Trigger, ...] = ()
        for each in nothing:
            yield each

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Refuse: nobody calls."""
        del request
        raise TriggerRejectedError("This source takes no requests", status=404)

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Say nothing: the hub knows what it has stored."""
        del trigger, before, after
        return Neighbours()
