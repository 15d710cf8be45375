"""Embedded engine: claims ready sessions in this process; the session rows are the queue (A6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from upright.core.backoff import Backoff
from upright.core.ids import SessionId
from upright.engine.clock import now_ms
from upright.engine.hints import Hint
from upright.engine.ports import Handler, Lease
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.store import outbox, sessions
from upright.store.errors import LeaseLostError, StoreUnavailableError
from upright.store.sessions import Claim
from upright.store.unit import Unit

log = logging.getLogger(__name__)

BACKOFF: Final = Backoff(base_s=2.0, cap_s=300.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Bounds of the engine, in seconds; ``turns`` is how many sessions run at once."""

    turns: int = 16
    lease_s: float = 30.0
    sweep_s: float = 5.0
    drain_s: float = 5.0


def recover(u: Unit) -> dict[str, int]:
    """Derive everything from the rows at start: no lease and no send of a dead hub stands."""
    return {"leases": sessions.free_all(u.c), "sends": outbox.abandon_all(u)}


class EmbeddedEngine:
    """Runs turns of sessions that are ready, one turn at a time each."""

    def __init__(
        self,
        units: Units,
        limits: EngineLimits,
        roll: Callable[[], float],
        signals: Signals,
        *,
        held: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make an engine; while *held* says so, it begins nothing new."""
        self._held = held
        self._units = units
        self._signals = signals
        self._limits = limits
        self._roll = roll
        self._hint = Hint()
        self._running: dict[SessionId, tuple[Claim, asyncio.Task[None]]] = {}
        self._draining = False

    @property
    def draining(self) -> bool:
        """Whether turns should end at their next safe point."""
        return self._draining

    def hint(self, sessions: Collection[SessionId]) -> None:
        """Say that these sessions may have something to do; a turn under way hears it, too."""
        for session in sessions:
            self._signals.notify(session)
        if sessions:
            self._hint.give()

    def drain(self) -> None:
        """Claim nothing more; ``run`` returns when the running turns have ended, or their time."""
        self._draining = True
        self._hint.give()

    async def drained(self) -> None:
        """Wait until drained, and claim nothing: a hub without a model."""
        while not self._draining:
            await self._hint.wait(self._limits.sweep_s)

    async def run(self, handle: Handler) -> None:
        """Claim and hand over until drained."""
        async with asyncio.TaskGroup() as group:
            renewal = group.create_task(self._renew(), name="engine.renew")
            while not self._draining:
                for claim in await self._claim():
                    self._start(group, handle, claim)
                if not self._draining:
                    await self._hint.wait(await self._pause_s())
            await self._let_end()
            renewal.cancel()

    def _start(self, group: asyncio.TaskGroup, handle: Handler, claim: Claim) -> None:
        older = self._running.get(claim.session)
        if older is not None:  # its lease ran out under it: it can write nothing more
            older[1].cancel()
        task = group.create_task(self._turn(handle, claim), name=f"turn {claim.session}")
        self._running[claim.session] = (claim, task)

    async def _claim(self) -> list[Claim]:
        free = self._limits.turns - len(self._running)
        if free <= 0 or self._held():
            return []
        until = int(self._limits.lease_s * 1000)

        def unit(u: Unit) -> list[Claim]:
            return sessions.claim(u.c, u.now_ms, u.now_ms + until, free)

        try:
            return await self._units.write(unit)
        except StoreUnavailableError:
            log.exception("engine.claim_failed")
            return []

    async def _pause_s(self) -> float:
        """Return how long nothing needs to be claimed: to the next ready time, at most a sweep."""
        if len(self._running) >= self._limits.turns or self._held():
            return self._limits.sweep_s
        try:
            ready = await self._units.read(sessions.next_ready_ms)
        except StoreUnavailableError:  # what runs goes on: the database may be back for its commit
            log.exception("engine.look_failed")
            return self._limits.sweep_s
        if ready is None:
            return self._limits.sweep_s
        wait_s = (ready - now_ms(self._units.clock)) / 1000
        return min(max(wait_s, 0.0), self._limits.sweep_s)

    async def _turn(self, handle: Handler, claim: Claim) -> None:
        """Run one turn; whatever it raises becomes a log line and a later try (the supervisor)."""
        try:
            await handle(Lease(session=claim.session, epoch=claim.epoch))
        except LeaseLostError:
            log.warning("turn.lease_lost", extra={"session": claim.session, "epoch": claim.epoch})
        except StoreUnavailableError:  # no fault of the turn's: it goes on with the database
            log.exception("turn.failed", extra={"session": claim.session})
            await self._put_back(claim, counts=False)
        except Exception:  # the supervisor of turns: logged, and tried again later
            log.exception("turn.failed", extra={"session": claim.session})
            await self._put_back(claim, counts=True)
        finally:
            if self._running.get(claim.session, (None,))[0] == claim:
                del self._running[claim.session]
            self._hint.give()

    async def _put_back(self, claim: Claim, *, counts: bool) -> None:
        """Give a session back for a later try; only what *counts* makes that later and later."""

        def unit(u: Unit) -> None:
            failures = sessions.load(u.c, claim.session).failures + counts
            delay = BACKOFF.delay_s(failures if counts else 1, roll=self._roll(), at_least_s=1.0)
            sessions.update(u.c, claim, failures=failures)
            retry = u.now_ms + int(delay * 1000)
            sessions.finish(u, claim, retry_at_ms=retry, end=False)

        try:
            await self._units.write(unit)
        except (LeaseLostError, StoreUnavailableError):
            log.exception("turn.put_back_failed", extra={"session": claim.session})

    async def _renew(self) -> None:
        while True:
            await self._units.clock.sleep(self._limits.lease_s / 3)
            claims = [claim for claim, _ in self._running.values()]
            if not claims:
                continue
            until = int(self._limits.lease_s * 1000)

            def unit(u: Unit, held: list[Claim] = claims, until: int = until) -> list[Claim]:
                return sessions.renew(u.c, held, u.now_ms + until)

            try:
                lost = await self._units.write(unit)
            except StoreUnavailableError:
                log.exception("engine.renew_failed")
                continue
            for claim in lost:
                current = self._running.get(claim.session)
                if current is not None and current[0] == claim:
                    current[1].cancel()

    async def _let_end(self) -> None:
        """Give running turns time to reach a safe point, then cancel them: nothing is lost."""
        tasks = [task for _, task in self._running.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._limits.drain_s)
        for task in late:
            task.cancel()
