"""Sender: performs what the outbox holds and is due; every try ends in a row (B15)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorNotReadyError,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.core.backoff import Backoff
from upright.core.ids import SessionId
from upright.core.outbox import TERMINAL, NotDelivered, Refused, Uncertain
from upright.engine.clock import now_ms
from upright.engine.hints import Hint
from upright.engine.units import Units
from upright.store import outbox
from upright.store.outbox import Setback, Stored
from upright.store.unit import Unit

log = logging.getLogger(__name__)

Send = Callable[[Effect], Awaitable[Receipt]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderLimits:
    """Bounds of the sender. ``send_s`` bounds one try; ``batch`` what is on its way at once."""

    sweep_s: float = 5.0
    send_s: float = 60.0
    batch: int = 16
    backoff: Backoff = field(default_factory=lambda: Backoff(base_s=2.0, cap_s=600.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderParts:
    """What the sender works with; ``woken`` is told which sessions have something to do."""

    units: Units
    send: Send
    woken: Callable[[Collection[SessionId]], None]
    roll: Callable[[], float]
    limits: SenderLimits


class Sender:
    """Claims, sends, settles: in order for each destination, and none waits for another.

    A lane (one destination of one source) has one effect on its way at a time; the store gives
    out its oldest, so the order holds over restarts, too.
    """

    def __init__(self, parts: SenderParts) -> None:
        self._units = parts.units
        self._send = parts.send
        self._woken = parts.woken
        self._roll = parts.roll
        self._limits = parts.limits
        self._hint = Hint()
        self._sending = 0

    def hint(self) -> None:
        """Say that the outbox may hold something that is due."""
        self._hint.give()

    async def run(self) -> None:
        """Send what is due, for ever; what an earlier run left behind is looked for first.

        A run ends when the store is gone for a moment, or by a connector's fault: what it was
        sending would be nobody's until the hub's next start.
        """
        await self._units.write(outbox.abandon_all)
        self._sending = 0
        async with asyncio.TaskGroup() as group:
            while True:
                for stored in await self._claim():
                    self._sending += 1
                    group.create_task(self._one(stored), name=f"send {stored.id}")
                await self._hint.wait(await self._pause_s())

    async def _claim(self) -> list[Stored]:
        free = self._limits.batch - self._sending
        if free <= 0:
            return []
        claims = await self._units.write(lambda u: outbox.claim_due(u, free))
        self._woken(claims.expired)
        return list(claims.taken)

    async def _one(self, stored: Stored) -> None:
        """Send one; whoever comes behind it in its lane is due now."""
        await self._perform(stored)
        self._sending -= 1
        self._hint.give()

    async def _pause_s(self) -> float:
        at = now_ms(self._units.clock)
        due = await self._units.read(lambda c: outbox.next_due_ms(c, at))
        if due is None or self._sending >= self._limits.batch:
            return self._limits.sweep_s
        return min(max((due - at) / 1000, 0.0), self._limits.sweep_s)

    async def _perform(self, stored: Stored) -> None:
        """Try once; what came of it, whatever it is, becomes the row's new state."""
        began = self._units.clock.monotonic()
        outcome = await self._try(stored)
        if isinstance(outcome, Receipt):
            took_s = self._units.clock.monotonic() - began
            await self._units.write(lambda u: outbox.delivered(u, stored, outcome, took_s))
            log.info("effect.sent", extra={"outbox": stored.id, "receipt": outcome.provider_id})
            return

        def unit(u: Unit) -> bool:
            return outbox.set_back(u, stored, outcome) in TERMINAL

        ended = await self._units.write(unit)
        extra = {"outbox": stored.id, "reason": outcome.reason, "ended": ended}
        log.warning("effect.set_back", extra=extra)
        if ended:
            self._woken([SessionId(stored.session)])

    async def _try(self, stored: Stored) -> Receipt | Setback:
        """Send; what a connector raises says what is known, and a silence is not known (B15.2)."""
        effect = Effect(
            id=stored.id,
            destination=stored.destination,
            text=stored.text,
            idempotency_key=stored.idempotency_key,
            tries=stored.item.tries - 1,
        )
        limits = self._limits
        try:
            async with asyncio.timeout(limits.send_s):
                return await self._send(effect)
        except (ConnectorNotReadyError, ConnectorAuthFailedError) as error:
            # nothing was tried: it waits for its channel until its own time is up
            after_s = getattr(error, "retry_after_s", None)
            return self._later(stored, error, after_s=after_s, gives_up=False)
        except RetryableSendError as error:
            return self._later(stored, error, after_s=error.after_s, gives_up=True)
        except PermanentSendError as error:
            return Setback(event=Refused(), reason=str(error))
        except UnknownSendError as error:
            return Setback(event=Uncertain(), reason=str(error))
        except TimeoutError:
            return Setback(event=Uncertain(), reason=f"no answer within {limits.send_s:g} s")

    def _later(
        self, stored: Stored, error: Exception, *, after_s: float | None, gives_up: bool
    ) -> Setback:
        backoff = self._limits.backoff
        wait_s = backoff.delay_s(stored.item.tries, roll=self._roll(), at_least_s=after_s)
        if not gives_up and after_s is None:
            wait_s = min(wait_s, outbox.PATIENCE_MS / 1000)  # it keeps its place in its lane
        return Setback(
            event=NotDelivered(),
            reason=str(error),
            wait_s=wait_s,
            backoff=backoff if gives_up else None,
        )
