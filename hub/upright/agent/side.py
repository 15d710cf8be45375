"""Side: a light question is answered beside the turn, with tools that only read (B9.5).

A side step changes nothing of the main transcript while it thinks. Its answer is stored with the
question, in one commit, as context that wakes nobody; the turn appends both at its next safe
point. If the hub dies before, the question is simply still queued.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from upright.agent import spending, steps
from upright.agent.keeping import Paid, lost
from upright.agent.prompts.notices import BESIDE
from upright.agent.state import Turn
from upright.agent.tools import recall
from upright.agent.tools.base import After, Done, Here, ToolRefusedError, refusal
from upright.api import Actor, ActorKind, Channel
from upright.core.context import batch
from upright.core.errors import CoreError
from upright.core.ids import TriggerId
from upright.core.transcript import Message, Role, ToolCall, before_open_calls
from upright.core.trigger import StoredTrigger
from upright.engine.ports import ChatModel, ChatReply, ChatRequest, ModelError
from upright.engine.units import Units
from upright.store import intake, sessions, strategy, work
from upright.store.errors import LeaseLostError, StoreUnavailableError, UnknownIdError
from upright.store.events import record
from upright.store.unit import Connection, Unit

T = TypeVar("T")
log = logging.getLogger(__name__)

READ_ONLY: Final = {recall.READ.name: recall.READ}
ANSWERED: Final = "side.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideLimits:
    """Bounds of one side step; ``at_once`` is how many may run beside one turn."""

    steps: int = 4
    seconds: float = 60.0
    at_once: int = 2


class Sides:
    """The side steps of one turn; ``told`` is called when one of them is over."""

    def __init__(
        self, units: Units, model: ChatModel, limits: SideLimits, told: Callable[[], None]
    ) -> None:
        self._units = units
        self._model = model
        self._limits = limits
        self._told = told
        self._running: dict[TriggerId, asyncio.Task[None]] = {}
        self._declined: set[str] = set()
        self._answered: set[str] = set()

    @property
    def declined(self) -> frozenset[str]:
        """The questions that no side step answers: the turn takes them like any other trigger."""
        return frozenset(self._declined)

    def start(self, group: asyncio.TaskGroup, turn: Turn, question: TriggerId) -> None:
        """Begin to answer a question, once; with too many at once it is left to the turn.

        The turn may have looked before an answer was stored, and ask for it after that.
        """
        if question in self._running or question in self._declined or question in self._answered:
            return
        if len(self._running) >= self._limits.at_once:
            self._declined.add(question)
            return
        shown = before_open_calls(turn.messages)
        answering = self._answer(turn.draft(), shown, question)
        self._running[question] = group.create_task(answering, name=f"side {question}")

    def stop(self) -> None:
        """Cancel what runs: the questions stay where they are."""
        for task in self._running.values():
            task.cancel()

    async def _answer(self, turn: Turn, shown: tuple[Message, ...], question: TriggerId) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds):
                is_answered = await self._think(turn, shown, question)
        except (ModelError, StoreUnavailableError, TimeoutError) as error:
            told = {"session": turn.claim.session, "trigger": question, "reason": str(error)}
            log.warning("side.failed", extra=told)
            is_answered = False
        except LeaseLostError:
            return  # whoever leads the session now finds the question in its inbox
        (self._answered if is_answered else self._declined).add(question)
        del self._running[question]
        self._told()

    async def _think(self, turn: Turn, shown: tuple[Message, ...], question: TriggerId) -> bool:
        """Ask the model until it answers in words; False when it does not within its steps."""
        stored = await self._units.read(lambda c: _question(c, question))
        asked = Message(role=Role.USER, text=f"{batch([stored])}\n\n{BESIDE}")
        messages = [*shown, asked]
        for _ in range(self._limits.steps):
            reply = await self._model.complete(_request(turn, messages, question), _unheard)
            if not reply.calls and reply.text.strip():
                end = Answered(turn=turn, question=stored, reply=reply)
                return await self._charged(turn, reply, partial(answered, end=end))
            said = Message(role=Role.ASSISTANT, text=reply.text, calls=reply.calls)
            step = partial(_step, turn=turn, reply=reply)
            messages += [said, *await self._charged(turn, reply, step)]
        return False

    async def _charged(self, turn: Turn, reply: ChatReply, unit: Callable[[Unit], T]) -> T:
        """Run a unit that charges an answer; the turn may answer the question if it can't."""
        try:
            return await self._units.write(unit)
        except (LeaseLostError, StoreUnavailableError) as error:
            lost(Paid(turn=turn, reply=reply), error)
            raise


def _unheard(_chars: int) -> None:
    """Nobody cuts a side step short, so nobody counts what it has said."""


def _request(turn: Turn, messages: list[Message], question: TriggerId) -> ChatRequest:
    """Make a request of the main turn's prompt, tools included, so that its cache is hit."""
    made = steps.request(turn, messages)
    return replace(made, session=f"{made.session}.{question}")


def _question(c: Connection, question: TriggerId) -> StoredTrigger:
    stored = intake.read(c, question)
    if stored is None:
        raise UnknownIdError(question)
    return stored


# ------------------------------------------------------------------ the units
def _step(u: Unit, turn: Turn, reply: ChatReply) -> list[Message]:
    """Charge a step that calls tools, and answer its calls; whatever could change is refused."""
    sessions.check(u.c, turn.claim)
    spending.replied(u, turn, reply, beside=True)
    return [
        Message(role=Role.TOOL, text=_outcome(u, turn, call).text, call_id=call.id)
        for call in reply.calls
    ]


def _outcome(u: Unit, turn: Turn, call: ToolCall) -> Done:
    tool = READ_ONLY.get(call.name)
    if tool is None:
        return refusal(f"{call.name} can't be called beside a turn, only {', '.join(READ_ONLY)}")
    here = Here(
        u=u,
        lease=turn.claim,
        turn=turn.id,
        call=call,
        item=work.read(u.c, turn.work) if turn.work else None,
        taint=turn.taint,
        after=After(),
    )
    try:
        done = u.attempt(lambda: tool(here))
    except (ToolRefusedError, CoreError) as error:
        return refusal(str(error))
    if not isinstance(done, Done):
        return refusal("this takes too long beside a turn")
    turn.taint = min(turn.taint, done.taints)  # the answer is no cleaner than what it was made of
    if done.private:
        sessions.update(u.c, turn.claim, private=True)
    return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a side step said to a question, in which turn."""

    turn: Turn
    question: StoredTrigger
    reply: ChatReply


def answered(u: Unit, end: Answered) -> bool:
    """Store an answer beside its question; False when the turn has taken the question itself."""
    turn, question = end.turn, end.question
    sessions.check(u.c, turn.claim)
    spending.replied(u, turn, end.reply, beside=True)
    if not strategy.answered_beside(u, turn.claim.session, question.id):
        return False
    notice = intake.Notice(
        kind=ANSWERED,
        channel=Channel.OPERATOR,
        title="ran in parallel",
        text=json.dumps({"ran in parallel": True, "you answered": end.reply.text}),
        actor=Actor(id=turn.claim.session, name="side step", kind=ActorKind.SYSTEM),
        trust=turn.taint,
        dedupe=(f"side:{question.id}",),
        facts=(("question", question.id),),
    )
    intake.notify(u, turn.claim.session, question.thread, notice, wake=False)
    known = steps.about_trigger(turn, question.id)
    record(u, ANSWERED, known, {"answer": end.reply.text})
    return True
