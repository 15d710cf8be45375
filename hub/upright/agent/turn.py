"""Turn runner: the loop's shell. It asks core what is next, does it, and commits (B8).

Between two actions nothing is held in memory that the tables don't hold: a kill at any point is
followed by a turn that goes on from the last commit. While the model thinks or a command runs,
the turn listens for its session: what is urgent cuts that short, a question goes to a side step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never

from upright.agent import compact, cut, settle, steps
from upright.agent.keeping import Paid, kept
from upright.agent.side import SideLimits, Sides
from upright.agent.state import Turn
from upright.agent.tools import agenda, neighbours
from upright.agent.tools.base import After
from upright.core.agenda import Agenda
from upright.core.compaction import ContextBounds, call_id
from upright.core.ids import SessionId
from upright.core.talk import Around
from upright.core.transcript import ToolCall
from upright.core.turn import (
    Action,
    AwaitJobs,
    AwaitSide,
    CallModel,
    Compact,
    CutShort,
    Limits,
    Nudge,
    Rest,
    RunCall,
    TakeInbox,
    next_action,
)
from upright.engine.ports import (
    AgendaTeller,
    ChatModel,
    ChatReply,
    ChatRequest,
    Devices,
    Lease,
    ModelError,
    ModelHeldError,
    ModelUnavailableError,
    Outward,
    Reckoned,
    Talk,
    unkept,
    untold,
)
from upright.engine.signals import DRAIN, Listening, Signals
from upright.engine.units import Units
from upright.store import strategy
from upright.store.errors import StoreUnavailableError
from upright.store.sessions import Claim
from upright.store.unit import Unit

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """Bounds of the agents. ``inline_wait_s``: how long a call waits for its job (B10.1).

    ``listen_s``: how often a turn that waits looks at its inbox, told of something or not.
    ``context``: from how many tokens on a prompt is compacted; ``summary_s``: how long the model
    may take over a summary.
    """

    turn: Limits = field(default_factory=Limits)
    side: SideLimits = field(default_factory=SideLimits)
    context: ContextBounds = field(default_factory=ContextBounds)
    summary_s: float = 120.0
    inline_wait_s: float = 5.0
    listen_s: float = 5.0


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
    talk: Talk = untold
    agenda: AgendaTeller = unkept


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
        parts, claim = self._parts, Claim(session=lease.session, epoch=lease.epoch)
        with parts.signals.listen([claim.session, DRAIN]) as heard:
            turn, action = await parts.units.write(
                lambda u: steps.open_turn(u, claim, parts.limits.turn, parts.limits.context)
            )
            log.info("turn.started", extra={"session": claim.session, "turn": turn.id})
            try:
                async with asyncio.TaskGroup() as group:
                    await _Run(parts, turn, group, heard).go(action)
            except ExceptionGroup as several:  # what failed first is what the engine must know
                raise several.exceptions[0] from None


class _Run:
    """One turn under way: only this task decides and writes the transcript."""

    def __init__(
        self, parts: AgentParts, turn: Turn, group: asyncio.TaskGroup, heard: Listening
    ) -> None:
        self._parts = parts
        self._turn = turn
        self._group = group
        self._heard = heard
        self._sides = Sides(parts.units, parts.model, parts.limits.side, heard.ring)

    async def go(self, action: Action) -> None:
        """Do one thing after the other, from *action* on, until the turn rests."""
        try:
            while not self._parts.draining():
                if not await self._do(action):
                    return
                action = await self._next()
            await self._write(settle.interrupt)
        finally:
            self._sides.stop()

    async def _next(self) -> Action:
        """Look at the rows, let side steps begin, and decide."""
        turn = self._turn
        turn.declined |= self._sides.declined
        view = await self._parts.units.read(lambda c: steps.look(c, turn))
        if view.beside:
            await self._listen()
        return next_action(view, self._parts.limits.turn)

    async def _write(self, unit: Callable[[Unit, Turn], T], *, paid: ChatReply | None = None) -> T:
        """Run a unit on a draft of the turn; once it is committed, the turn takes that over.

        *paid* is the answer that it appends: it is not given up as soon as the store is away.
        """
        parts, turn = self._parts, self._turn

        def drafted(u: Unit) -> tuple[Turn, T]:
            draft = turn.draft()
            return draft, unit(u, draft)

        if paid is None:
            draft, done = await parts.units.write(drafted)
        else:
            draft, done = await kept(parts.units, Paid(turn=turn, reply=paid), drafted, parts.roll)
        turn.take_over(draft)
        return done

    async def _do(self, action: Action) -> bool:
        """Do one thing; return False when the turn is over."""
        match action:
            case TakeInbox():
                await self._write(steps.take_inbox)
            case CallModel():
                return await self._call_model()
            case RunCall(call):
                learned = await self._asked(call)
                self._hint(await self._write(lambda u, t: steps.run_call(u, t, call, learned)))
            case AwaitJobs(calls):
                await self._await_jobs([call.id for call in calls])
            case CutShort(calls):
                self._hint(await self._write(lambda u, t: cut.calls(u, t, calls)))
            case Compact():
                await self._compact()
            case AwaitSide():
                await self._heard.wait(self._parts.limits.listen_s)
            case Nudge():
                await self._write(steps.nudge)
            case Rest(ending, reason):
                self._hint(await self._write(lambda u, t: settle.rest(u, t, ending, reason)))
                return False
            case _:
                assert_never(action)
        return True

    async def _asked(self, call: ToolCall) -> Around | Agenda | None:
        """Ask the world what a call needs, before its unit: nothing waits in a transaction."""
        if call.name == agenda.AGENDA.name:
            wanted = agenda.question(call)
            return await self._parts.agenda(wanted) if wanted else None
        if call.name != neighbours.NEIGHBOURS.name:
            return None
        session = self._turn.claim.session
        question = await self._parts.units.read(lambda c: neighbours.question(c, session, call))
        return await self._parts.talk(question) if question else None

    # -------------------------------------------------------------- what comes meanwhile
    async def _listen(self) -> bool:
        """Look at what presses the session: begin side steps; say whether it is interrupted."""
        session = self._turn.claim.session
        try:
            found = await self._parts.units.read(lambda c: strategy.pressing(c, session))
        except StoreUnavailableError:  # the next safe point looks again
            log.exception("turn.listen_failed", extra={"session": session})
            return False
        for question in found.questions:
            if question not in self._turn.declined:
                self._sides.start(self._group, self._turn, question)
        return bool(found.urgent)

    # -------------------------------------------------------------- the model
    async def _call_model(self) -> bool:
        """Ask the model; something urgent closes its stream, and is told to it at once."""
        thought = await self._think(steps.request(self._turn, self._turn.messages))
        if not isinstance(thought, _Cut):
            return await self._replied(thought)
        await self._write(lambda u, t: cut.thought(u, t, thought.used, thought.seconds))
        return True

    async def _compact(self) -> None:
        """Begin a new generation; what is urgent goes first, and the next turn compacts."""
        thought = await self._think(compact.request(self._turn), self._parts.limits.summary_s)
        match thought:
            case _Cut():
                await self._write(lambda u, t: compact.cut(u, t, thought.used))
            case ModelHeldError():
                pass  # the turn finds out by itself, and keeps its context until it may go on
            case ModelError():
                why = str(thought)
                log.warning(
                    "model.failed", extra={"session": self._turn.claim.session, "reason": why}
                )
                await self._write(lambda u, t: compact.begin_anew(u, t, None, why))
            case ChatReply():
                await self._write(lambda u, t: compact.begin_anew(u, t, thought), paid=thought)

    async def _think(
        self, request: ChatRequest, bound_s: float | None = None
    ) -> ChatReply | ModelError | _Cut:
        """Ask the model, and listen meanwhile; what is urgent cuts it off."""
        model, clock = self._parts.model, self._parts.units.clock
        said, began = list[int](), clock.monotonic()
        asked = _outcome(model, request, said, bound_s)
        thinking = self._group.create_task(asked, name="model")
        thinking.add_done_callback(lambda _: self._heard.ring())
        while not thinking.done():
            await self._heard.wait(self._parts.limits.listen_s)
            if not thinking.done() and await self._listen() and thinking.cancel():
                return _Cut(model.reckon(request, sum(said)), clock.monotonic() - began)
        return thinking.result()

    async def _replied(self, reply: ChatReply | ModelError) -> bool:
        """Commit an answer, or end the turn without one."""
        try:
            said = _checked(reply, self._turn)
        except ModelUnavailableError as error:
            await self._fail(error, retry_s=error.retry_after_s, retries=True)
            return False
        except ModelHeldError as error:
            reason, until_ms = error.reason, error.until_ms
            await self._write(lambda u, t: settle.held(u, t, reason, until_ms))
            self._parts.timers()
            return False
        except ModelError as error:
            await self._fail(error, retry_s=None, retries=False)
            return False
        await self._write(lambda u, t: steps.replied(u, t, said), paid=said)
        return True

    async def _fail(self, error: ModelError, *, retry_s: float | None, retries: bool) -> None:
        log.warning(
            "model.failed",
            extra={"session": self._turn.claim.session, "code": error.code, "reason": str(error)},
        )
        failure = settle.Failure(
            code=error.code,
            reason=str(error),
            retry_after_s=retry_s,
            retries=retries,
            roll=self._parts.roll(),
            attempts=getattr(error, "attempts", 0),
            wasted=getattr(error, "wasted", None),
        )
        await self._write(lambda u, t: settle.failed(u, t, failure))
        self._parts.timers()

    async def _await_jobs(self, calls: list[str]) -> None:
        """Wait for the jobs of open calls, a bounded time; then answer every one of them.

        Something urgent ends the wait, and leaves the calls to be cut short.
        """
        units, clock, turn = self._parts.units, self._parts.units.clock, self._turn
        until = clock.monotonic() + self._parts.limits.inline_wait_s
        ids = [turn.jobs[call] for call in calls]
        with self._parts.signals.listen([*ids, turn.claim.session, DRAIN]) as listening:
            while await units.read(lambda c: steps.unfinished(c, ids)):
                if await self._listen():
                    return
                left = until - clock.monotonic()
                if left <= 0 or self._parts.draining():
                    break
                await listening.wait(left)
        await self._write(lambda u, t: steps.answer_jobs(u, t, calls))

    def _hint(self, after: After) -> None:
        """Tell the others what was committed; a lost hint is made good by their sweeps."""
        if after.devices:
            self._parts.devices.hint(after.devices)
        if after.outbox:
            self._parts.outward.hint()
        if after.timers:
            self._parts.timers()
        self._parts.wake(after.sessions)


@dataclass(frozen=True, slots=True)
class _Cut:
    """A thought that something urgent ended: what it used, and how many seconds it took."""

    used: Reckoned
    seconds: float


async def _outcome(
    model: ChatModel, request: ChatRequest, said: list[int], bound_s: float | None
) -> ChatReply | ModelError:
    """Ask the model; *said* collects how many characters came. Its failure is a result."""
    try:
        async with asyncio.timeout(bound_s):
            return await model.complete(request, said.append)
    except ModelError as error:
        return error
    except TimeoutError:
        return ModelUnavailableError(f"no answer within {bound_s} s")


def _checked(reply: ChatReply | ModelError, turn: Turn) -> ChatReply:
    """Refuse call ids that are not new: each needs exactly one answer (B8.2).

    A model counts anew in a new generation; its calls are told apart by that.
    """
    if isinstance(reply, ModelError):
        raise reply
    known = {call.id for message in turn.messages for call in message.calls} | {""}
    made = []
    for call in reply.calls:
        own = replace(call, id=call.id and call_id(call.id, turn.generation))
        if own.id in known:
            raise ModelUnavailableError("the model used a call id twice, or an empty one")
        known.add(own.id)
        made.append(own)
    return replace(reply, calls=tuple(made))
