"""A connector's context in memory: no store, no key ring, and a clock that tests move."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from upright.api import ConnectorAuthFailedError, Secret, SecretRef, Trigger

START: Final = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
PATIENCE_S: Final = 10.0


@dataclass(slots=True, kw_only=True)
class MemoryContext:
    """Implements :class:`upright.api.ConnectorContext`; keeps what came, as the hub would.

    ``secrets`` maps a reference (``env:TOKEN``) to the secret. ``emitted`` is all that came,
    ``accepted`` what the hub would take: a trigger with a key that was seen is refused.
    ``cursors`` are those that came, ``marks`` how many triggers each of them covers.

    Time passes only when a test says so (:meth:`pass_time`). With ``hurries``, a sleep moves the
    clock itself and returns at once.
    """

    source: str = "test"
    secrets: dict[str, str] = field(default_factory=dict)
    at: datetime = START
    hurries: bool = True
    emitted: list[Trigger] = field(default_factory=list)
    accepted: list[Trigger] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    sleepers: int = 0  # how many sleep now
    slept: int = 0  # how many sleeps have ended
    _jumped_s: float = 0.0
    _elapsed_s: float = 0.0
    _keys: set[str] = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # something came, or fell asleep
    _ticked: asyncio.Event = field(default_factory=asyncio.Event)  # the clock moved

    @property
    def log(self) -> logging.Logger:
        """A logger of this source, as the hub names it."""
        return logging.getLogger(f"upright.source.{self.source}")

    def secret(self, reference: SecretRef) -> Secret:
        """Return a secret; ConnectorAuthFailedError when there is none."""
        try:
            return Secret(self.secrets[reference.reference])
        except KeyError:
            reason = f"There is no secret {reference.reference}"
            raise ConnectorAuthFailedError(reason) from None

    # -------------------------------------------------------------- what comes
    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        """Keep triggers, and the cursor that covers them."""
        self.take(triggers)
        if cursor is not None:
            self.cursors.append(cursor)
            self.marks.append(len(self.accepted))
        self._wake()
        await asyncio.sleep(0)

    def take(self, triggers: Sequence[Trigger]) -> tuple[Trigger, ...]:
        """Keep triggers without a cursor, as those of a webhook; return the accepted ones."""
        new = []
        for trigger in triggers:
            self.emitted.append(trigger)
            if self._keys.isdisjoint(trigger.dedupe):
                new.append(trigger)
            self._keys.update(trigger.dedupe)
        self.accepted += new
        self._wake()
        return tuple(new)

    async def cursor(self) -> str | None:
        """Return the last cursor; None when none ever came."""
        return self.cursors[-1] if self.cursors else None

    async def until(self, count: int, *, within_s: float = PATIENCE_S) -> tuple[Trigger, ...]:
        """Wait, in real time, until so many triggers were accepted; return all of them.

        Raises:
            AssertionError: there were fewer in time.
        """
        try:
            async with asyncio.timeout(within_s):
                while len(self.accepted) < count:
                    await self._news.wait()
        except TimeoutError:
            kinds = [trigger.kind for trigger in self.accepted]
            said = f"{len(kinds)} of {count} came within {within_s} s: {kinds}"
            raise AssertionError(said) from None
        return tuple(self.accepted)

    async def until_cursor(self, *, within_s: float = PATIENCE_S) -> str:
        """Wait, in real time, until a cursor was kept; return the last.

        Raises:
            AssertionError: there was none in time.
        """
        try:
            async with asyncio.timeout(within_s):
                while not self.cursors:
                    await self._news.wait()
        except TimeoutError:
            said = f"no cursor came within {within_s} s"
            raise AssertionError(said) from None
        return self.cursors[-1]

    # -------------------------------------------------------------- time
    def now(self) -> datetime:
        """Return what the clock shows."""
        return self.at

    def service_now(self) -> datetime:
        """Return what the service's clock shows: no jump of ours moves it."""
        return self.at - timedelta(seconds=self._jumped_s)

    def pass_time(self, seconds: float) -> None:
        """Let time pass: who has slept long enough wakes."""
        self._elapsed_s += seconds
        self._jumped_s -= seconds
        self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back; no time passes by that."""
        self._jumped_s += seconds
        self.at += timedelta(seconds=seconds)
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()

    async def sleep(self, seconds: float) -> None:
        """Wait until so much time has passed, however the wall clock jumps."""
        until_s = self._elapsed_s + seconds
        while self._elapsed_s < until_s:
            await self._doze(until_s - self._elapsed_s)
        self.slept += 1

    async def sleep_until(self, at: datetime) -> None:
        """Wait until the wall clock shows *at*."""
        while self.at < at:
            await self._doze((at - self.at).total_seconds())
        self.slept += 1

    async def until_asleep(self, *, count: int = 1, within_s: float = PATIENCE_S) -> None:
        """Wait, in real time, until so many sleep: then nothing happens before time passes."""
        async with asyncio.timeout(within_s):
            while self.sleepers < count:
                await self._news.wait()

    async def sleep_through(self, seconds: float, *, within_s: float = PATIENCE_S) -> None:
        """Let time pass; return once somebody has woken, done what was due, and sleeps again."""
        ended = self.slept
        self.pass_time(seconds)
        async with asyncio.timeout(within_s):
            while self.slept == ended or not self.sleepers:
                await self._news.wait()

    async def _doze(self, seconds: float) -> None:
        if self.hurries:
            self.pass_time(seconds)
            await asyncio.sleep(0)
            return
        self.sleepers += 1
        self._wake()
        try:
            await self._ticked.wait()
        finally:
            self.sleepers -= 1

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
