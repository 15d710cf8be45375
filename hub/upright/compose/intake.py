"""Intake: triggers from webhooks and connectors go in by one door, together; hints follow.

What comes while a batch is being stored makes the next batch: many requests share a transaction,
and each is answered after the commit that holds it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from upright.api import Trigger
from upright.compose.backlog import Backlog
from upright.compose.growth import Growth
from upright.engine.embedded import EmbeddedEngine
from upright.engine.hints import Hint
from upright.engine.units import Units
from upright.store import intake, policy, sources, spoken
from upright.store.answering import Answering
from upright.store.arrivals import Arrival
from upright.store.errors import StoreError, StoreUnavailableError
from upright.store.intake import Accepted, Policy
from upright.store.unit import Connection, Unit

HEARD_MS: Final = 1000
"""How exactly it is stored when a source was last heard: not anew with each of a storm."""
MOST_TRIGGERS: Final = 256
"""So many go into one transaction: it bounds how long the first of them waits."""
SWEEP_S: Final = 60.0  # a hint is never lost in here

Remarked = Callable[[str, Sequence[Trigger]], Awaitable[Sequence[Trigger]]]
"""``await remarked(source, triggers)``: the triggers, with what other sources know of them."""


def _nobody(_source: str) -> bool:
    return False


async def _as_it_is(_source: str, triggers: Sequence[Trigger]) -> Sequence[Trigger]:
    return triggers


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """One request that waits for its commit."""

    arrival: Arrival
    answer: asyncio.Future[list[Accepted]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeParts:
    """What intake works with."""

    units: Units
    engine: EmbeddedEngine
    base: policy.Base
    growth: Growth
    backlog: Backlog


class Intake:
    """Takes triggers in for the web and for connectors; :meth:`run` stores them.

    Each batch is judged by the policy that holds when it is stored: what a person has changed
    counts from the next one on (B3.4).
    """

    def __init__(self, parts: IntakeParts) -> None:
        self._parts = parts
        self._held: policy.Held | None = None
        self._heard_ms: dict[str, int] = {}
        self._waiting: deque[_Waiting] = deque()
        self._hint = Hint()
        self._remarked: Remarked = _as_it_is
        self._vouches: Callable[[str], bool] = _nobody

    def completes_by(self, remarked: Remarked) -> None:
        """Have what comes completed by what other sources know of it, from now on."""
        self._remarked = remarked

    def answered_in(self, vouches: Callable[[str], bool]) -> None:
        """Take answers to requests from the sources that vouch for their authors, from now on."""
        self._vouches = vouches

    def policy(self, c: Connection) -> Policy:
        """Return what the next trigger is judged by."""
        return policy.current(c, self._parts.base, self._held).policy

    async def accept(self, source: str, triggers: Sequence[Trigger]) -> Sequence[Accepted]:
        """Store what a source brought; return after the commit.

        Raises:
            BusyError: too much waits unread; nothing was stored.
            DiskFullError: the disk is nearly full; nothing was stored.
            StoreUnavailableError: nothing was stored.
        """
        await self._parts.backlog.require_room()
        return await self._taken(Arrival(source=source, triggers=triggers))

    async def emit(self, source: str, triggers: Sequence[Trigger], cursor: str | None) -> None:
        """Store triggers and the cursor that covers them, in one transaction (B1.6).

        While too much waits unread, this waits: nothing is dropped (B2.6).
        """
        await self._parts.backlog.room()
        await self._taken(Arrival(source=source, triggers=triggers, cursor=cursor))

    async def keep(
        self, source: str, triggers: Sequence[Trigger], until: str, *, whole: bool
    ) -> None:
        """Store what a listing brought, and the moment that it has come to (B2.3)."""
        await self._parts.backlog.room()
        listed = Arrival(source=source, triggers=triggers, cursor=until, listed=True, whole=whole)
        await self._taken(listed)

    async def _taken(self, arrival: Arrival) -> list[Accepted]:
        self._parts.growth.require_room()
        told = await self._remarked(arrival.source, arrival.triggers)
        arrival = replace(arrival, triggers=told)
        waiting = _Waiting(arrival, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._hint.give()
        return await waiting.answer

    async def run(self) -> None:
        """Store what comes, batch after batch, in the order in which it came."""
        while True:
            while batch := list(self._next()):
                await self._serve(batch)
            await self._hint.wait(SWEEP_S)

    def _next(self) -> Iterator[_Waiting]:
        """Take what makes the next batch: one request at the least, however large it is."""
        triggers = 0
        while self._waiting:
            triggers += len(self._waiting[0].arrival.triggers)
            if triggers > MOST_TRIGGERS and triggers > len(self._waiting[0].arrival.triggers):
                return
            yield self._waiting.popleft()

    async def _serve(self, batch: Sequence[_Waiting]) -> None:
        """Store a batch and answer each of its requests, even when this is cut short."""
        lost: Exception = StoreUnavailableError("intake was interrupted")
        found: Sequence[list[Accepted] | Exception] = ()
        try:
            found = await self._store([waiting.arrival for waiting in batch])
        except (StoreError, OSError) as error:
            lost = error
        finally:
            for waiting, answer in zip(batch, found or [lost] * len(batch), strict=True):
                _settle(waiting.answer, answer)

    async def _store(self, batch: Sequence[Arrival]) -> list[list[Accepted] | Exception]:
        def unit(u: Unit) -> tuple[list[list[Accepted] | Exception], dict[str, int], policy.Held]:
            held = policy.current(u.c, self._parts.base, self._held)
            heard_ms = dict(self._heard_ms)
            for source in {arrival.source for arrival in batch}:
                if u.now_ms - heard_ms.get(source, 0) >= HEARD_MS:
                    sources.heard(u, source)
                    heard_ms[source] = u.now_ms
            own = replace(held.policy, answering=answering)
            return intake.accept_each(u, batch, own), heard_ms, held

        parts = self._parts
        vouching = frozenset(filter(self._vouches, {arrival.source for arrival in batch}))
        answering = Answering(sources=vouching, follow=spoken.follow)
        raws = [trigger.raw for arrival in batch for trigger in arrival.triggers]
        async with parts.growth.spilled(raws, parts.base.spill_bytes):
            found, self._heard_ms, self._held = await parts.units.write(unit)
        accepted = [one for each in found if isinstance(each, list) for one in each]
        parts.backlog.added(sum(len(one.woke) for one in accepted))
        parts.engine.hint([session for one in accepted for session in one.sooner])
        return found


def _settle(answer: asyncio.Future[list[Accepted]], found: list[Accepted] | Exception) -> None:
    if answer.done():  # the caller was cancelled
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)
