"""Sender: performs what the outbox holds and is due; every try ends in a row (B15)."""

from __future__ import annotations

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
    """Bounds of the sender. ``send_s`` bounds one try; ``batch`` what is claimed at once."""

    sweep_s: float = 5.0
    send_s: float = 60.0
    batch: int = 8
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
    """Claims, sends, settles; one at a time and in order: a thread reads as it was meant."""

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
        """Send what is due, for ever."""
        while True:
            claimed = await self._units.write(lambda u: outbox.claim_due(u, self._limits.batch))
            for stored in claimed:
                await self._perform(stored)
            if not claimed:
                await self._hint.wait(await self._pause_s())

    async def _pause_s(self) -> float:
        due = await self._units.read(outbox.next_due_ms)
        if due is None:
            return self._limits.sweep_s
        wait_s = (due - now_ms(self._units.clock)) / 1000
        return min(max(wait_s, 0.0), self._limits.sweep_s)

    async def _perform(self, stored: Stored) -> None:
        """Try once. What a connector raises says what is known; anything else is unknown."""
        effect = Effect(
            id=stored.id,
            destination=stored.destination,
            text=stored.text,
            idempotency_key=stored.idempotency_key,
            tries=stored.item.tries - 1,
        )
        began = self._units.clock.monotonic()
        try:
            receipt = await self._send(effect)
        except ConnectorNotReadyError as error:
            await self._set_back(stored, NotDelivered(), error, at_least_s=error.retry_after_s)
        except RetryableSendError as error:
            await self._set_back(stored, NotDelivered(), error, at_least_s=error.after_s)
        except ConnectorAuthFailedError as error:
            await self._set_back(stored, NotDelivered(), error, at_least_s=60.0)
        except PermanentSendError as error:
            await self._set_back(stored, Refused(), error)
        except UnknownSendError as error:
            await self._set_back(stored, Uncertain(), error)
        else:
            took_s = self._units.clock.monotonic() - began
            await self._units.write(lambda u: outbox.delivered(u, stored, receipt, took_s))
            log.info("effect.sent", extra={"outbox": stored.id, "receipt": receipt.provider_id})

    async def _set_back(
        self,
        stored: Stored,
        event: NotDelivered | Refused | Uncertain,
        error: Exception,
        *,
        at_least_s: float | None = None,
    ) -> None:
        wait_s = self._limits.backoff.delay_s(
            stored.item.tries, roll=self._roll(), at_least_s=at_least_s
        )
        setback = Setback(event=event, reason=str(error)[:500], wait_s=wait_s)

        def unit(u: Unit) -> bool:
            return outbox.set_back(u, stored, setback, self._limits.backoff) in TERMINAL

        ended = await self._units.write(unit)
        log.warning(
            "effect.set_back",
            extra={"outbox": stored.id, "reason": setback.reason, "ended": ended},
        )
        if ended:
            self._woken([SessionId(stored.session)])
