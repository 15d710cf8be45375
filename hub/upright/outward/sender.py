"""Sender: performs what the outbox holds and is due; every try ends in a row (B15)."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
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
    """Bounds of the sender. ``send_s`` bounds one try; ``batch`` what is claimed at once."""

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
    """Claims, sends, settles: in order for each source, and no source waits for another."""

    def __init__(self, parts: SenderParts) -> None:
        self._units = parts.units
        self._send = parts.send
        self._woken = parts.woken
        self._roll = parts.roll
        self._limits = parts.limits
        self._hint = Hint()

    def hint(self) -> None:
        """Say that the outbox may hold something that is due."""
        self._hint.give()

    async def run(self) -> None:
        """Send what is due, for ever; what an earlier run left behind is looked for first.

        A run ends when the store is gone for a moment, or by a connector's fault: what it was
        sending would be nobody's until the hub's next start.
        """
        await self._units.write(outbox.abandon_all)
        while True:
            claimed = await self._units.write(lambda u: outbox.claim_due(u, self._limits.batch))
            by_source: defaultdict[str, list[Stored]] = defaultdict(list)
            for stored in claimed:
                by_source[stored.destination.source].append(stored)
            async with asyncio.TaskGroup() as group:
                for source, batch in by_source.items():
                    group.create_task(self._in_order(batch), name=f"send {source}")
            if not claimed:
                await self._hint.wait(await self._pause_s())

    async def _in_order(self, batch: Iterable[Stored]) -> None:
        for stored in batch:
            await self._perform(stored)

    async def _pause_s(self) -> float:
        due = await self._units.read(outbox.next_due_ms)
        if due is None:
            return self._limits.sweep_s
        wait_s = (due - now_ms(self._units.clock)) / 1000
        return min(max(wait_s, 0.0), self._limits.sweep_s)

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
        return Setback(
            event=NotDelivered(),
            reason=str(error),
            wait_s=wait_s,
            backoff=backoff if gives_up else None,
        )
