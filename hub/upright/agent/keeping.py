"""Keeping: an answer that was paid for outlives a store that is away for a moment (B16.1).

What can't be stored at last is in the log with what it cost: no ledger has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from upright.agent.state import Turn
from upright.core.backoff import Backoff
from upright.engine.ports import ChatReply
from upright.engine.units import Units
from upright.store import sessions
from upright.store.errors import LeaseLostError, StoreUnavailableError
from upright.store.unit import Unit

T = TypeVar("T")
BACKOFF: Final = Backoff(base_s=0.5, cap_s=16.0, max_tries=8)
"""About half a minute, with its jitter: after that the turn is run again, and asks again."""
log: Final = logging.getLogger(__name__)


class Told(Enum):
    """What a try finds that comes after another one."""

    STORED = "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """An answer, and the turn that it was given to."""

    turn: Turn
    reply: ChatReply


async def kept(units: Units, paid: Paid, unit: Callable[[Unit], T], roll: Callable[[], float]) -> T:
    """Commit *unit*, which appends the answer to the turn's transcript; try again for a while.

    Raises:
        LeaseLostError: somebody else leads the session; the answer is lost, and logged.
        StoreUnavailableError: as that; or an earlier try has stored it, and the rows tell.
    """
    try:
        done = await _tried(units, paid.turn, unit, roll)
    except (LeaseLostError, StoreUnavailableError, asyncio.CancelledError) as error:
        lost(paid, error)
        raise
    if isinstance(done, Told):
        raise StoreUnavailableError("an answer was stored, and nobody heard of it")
    return done


def lost(paid: Paid, error: BaseException) -> None:
    """Say what an answer has cost that can't be stored."""
    turn, reply = paid.turn, paid.reply
    log.error(
        "model.answer_lost",
        extra={
            "session": turn.claim.session,
            "turn": turn.id,
            "model": reply.model,
            "tokens_input": reply.usage.input,
            "tokens_output": reply.usage.output,
            "usd_micros": reply.cost_usd_micros,
            "reason": str(error) or type(error).__name__,
        },
    )


async def _tried(
    units: Units, turn: Turn, unit: Callable[[Unit], T], roll: Callable[[], float]
) -> T | Told:
    tried: Callable[[Unit], T | Told] = unit
    for tries in range(1, BACKOFF.max_tries):
        try:
            return await units.write(tried)
        except StoreUnavailableError as error:
            extra = {"session": turn.claim.session, "tries": tries, "reason": str(error)}
            log.warning("model.answer_waits", extra=extra)
        await units.clock.sleep(BACKOFF.delay_s(tries, roll=roll()))
        tried = _once(turn, unit)
    return await units.write(tried)


def _once(turn: Turn, unit: Callable[[Unit], T]) -> Callable[[Unit], T | Told]:
    """Return the unit for another try: it does nothing if the transcript has grown meanwhile."""

    def again(u: Unit) -> T | Told:
        found = sessions.load(u.c, turn.claim.session)
        if (found.generation, len(found.messages)) != (turn.generation, len(turn.messages)):
            return Told.STORED
        return unit(u)

    return again
