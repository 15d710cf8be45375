"""Turn runner: the loop's shell. It asks core what is next, does it, and commits (B8).

Between two actions nothing is held in memory that the tables don't hold: a kill at any point is
followed by a turn that goes on from the last commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar, assert_never

from upright.agent import settle, steps
from upright.agent.state import Turn
from upright.agent.tools.base import After
from upright.core.ids import SessionId
from upright.core.turn import (
    Action,
    AwaitJobs,
    CallModel,
    Limits,
    Nudge,
    Rest,
    RunCall,
    TakeInbox,
    next_action,
)
from upright.engine.ports import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Devices,
    Lease,
    ModelError,
    ModelUnavailableError,
    Outward,
)
from upright.engine.signals import DRAIN, Signals
from upright.engine.units import Units
from upright.store.sessions import Claim
from upright.store.unit import Unit

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """Bounds of the agents. ``inline_wait_s``: how long a call waits for its job (B10.1)."""

    turn: Limits = field(default_factory=Limits)
    inline_wait_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What the turn runner works with."""

    units: Units
    model: ChatModel
    devices: Devices
    outward: Outward
    signals: Signals
    wake: Callable[[Collection[SessionId]], None]
    timers: Callable[[], None]
    roll: Callable[[], float]
    draining: Callable[[], bool]
    limits: AgentLimits


class TurnRunner:
    """Runs one turn of one leased session; the engine calls it."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts

    async def __call__(self, lease: Lease) -> None:
        """Run a turn to its rest.

        Raises:
            LeaseLostError: somebody else leads the session; nothing more was written.
            StoreUnavailableError: nothing more was written; the turn is run again.
        """
        claim = Claim(session=lease.session, epoch=lease.epoch)
        units = self._parts.units
        turn = await units.write(lambda u: steps.begin(u, claim))
        log.info("turn.started", extra={"session": claim.session, "turn": turn.id})
        while not self._parts.draining():
            view = await units.read(lambda c: steps.look(c, turn))
            action = next_action(view, self._parts.limits.turn)
            if not await self._do(turn, action):
                return
        await self._write(turn, settle.interrupt)

    async def _write(self, turn: Turn, unit: Callable[[Unit, Turn], T]) -> T:
        """Run a unit on a draft of the turn; once it is committed, the turn takes that over."""

        def drafted(u: Unit) -> tuple[Turn, T]:
            draft = turn.draft()
            return draft, unit(u, draft)

        draft, done = await self._parts.units.write(drafted)
        turn.take_over(draft)
        return done

    async def _do(self, turn: Turn, action: Action) -> bool:
        """Do one thing; return False when the turn is over."""
        match action:
            case TakeInbox():
                await self._write(turn, steps.take_inbox)
            case CallModel():
                return await self._call_model(turn)
            case RunCall(call):
                self._hint(await self._write(turn, lambda u, t: steps.run_call(u, t, call)))
            case AwaitJobs(calls):
                await self._await_jobs(turn, [call.id for call in calls])
            case Nudge():
                await self._write(turn, steps.nudge)
            case Rest(ending):
                self._hint(await self._write(turn, lambda u, t: settle.rest(u, t, ending)))
                return False
            case _:
                assert_never(action)
        return True

    async def _call_model(self, turn: Turn) -> bool:
        request = ChatRequest(
            role=turn.kind,
            session=turn.claim.session,
            messages=tuple(turn.messages),
            tools=steps.tools(turn),
        )
        try:
            reply = _checked(await self._parts.model.complete(request, lambda: None), turn)
        except ModelUnavailableError as error:
            retry_s = error.retry_after_s
            await self._fail(turn, error, retry_s=retry_s, retries=True)
            return False
        except ModelError as error:
            await self._fail(turn, error, retry_s=None, retries=False)
            return False
        await self._write(turn, lambda u, t: steps.replied(u, t, reply))
        return True

    async def _fail(
        self, turn: Turn, error: ModelError, *, retry_s: float | None, retries: bool
    ) -> None:
        log.warning(
            "model.failed",
            extra={"session": turn.claim.session, "code": error.code, "reason": str(error)},
        )
        failure = settle.Failure(
            code=error.code,
            reason=str(error),
            retry_after_s=retry_s,
            retries=retries,
            roll=self._parts.roll(),
        )
        await self._write(turn, lambda u, t: settle.failed(u, t, failure))
        self._parts.timers()

    async def _await_jobs(self, turn: Turn, calls: list[str]) -> None:
        """Wait for the jobs of open calls, a bounded time; then answer every one of them."""
        units, clock = self._parts.units, self._parts.units.clock
        until = clock.monotonic() + self._parts.limits.inline_wait_s
        ids = [turn.jobs[call] for call in calls]
        with self._parts.signals.listen([*ids, DRAIN]) as listening:
            while await units.read(lambda c: steps.unfinished(c, ids)):
                left = until - clock.monotonic()
                if left <= 0 or self._parts.draining():
                    break
                await listening.wait(left)
        await self._write(turn, lambda u, t: steps.answer_jobs(u, t, calls))

    def _hint(self, after: After) -> None:
        """Tell the others what was committed; a lost hint is made good by their sweeps."""
        if after.devices:
            self._parts.devices.hint(after.devices)
        if after.outbox:
            self._parts.outward.hint()
        if after.timers:
            self._parts.timers()
        self._parts.wake(after.sessions)


def _checked(reply: ChatReply, turn: Turn) -> ChatReply:
    """Refuse call ids that are not new: each needs exactly one answer (B8.2)."""
    known = {call.id for message in turn.messages for call in message.calls} | {""}
    for call in reply.calls:
        if call.id in known:
            raise ModelUnavailableError("the model used a call id twice, or an empty one")
        known.add(call.id)
    return reply
