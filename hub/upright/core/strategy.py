"""Strategy: what a trigger does to the session that gets it: one of four things (B9).

Code says which options are legal now, one table says which is taken; advice, where there is any,
picks among the legal ones and nothing else. What no table names is queued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.api import ActorKind
from upright.core.mandate import Trust, instructs


class Strategy(StrEnum):
    """What is done with a trigger."""

    CANCEL = "cancel"  # cut the step under way short, and tell it at once
    QUEUE = "queue"  # at the next safe point
    PARALLEL = "parallel"  # a side step answers, the turn goes on
    IGNORE = "ignore"  # not for this session


class Means(StrEnum):
    """What a trigger is to the session, whatever its source calls it (B9.2)."""

    USER_INPUT = "user.input"
    USER_INTERRUPT = "user.interrupt"
    USER_QUESTION = "user.question"
    SUPERVISOR_INSTRUCTION = "supervisor.instruction"
    AGENT_INPUT = "agent.input"
    AGENT_INTERRUPT = "agent.interrupt"
    TOOL_RESULT = "tool.result"
    TIMER_TRIGGER = "timer.trigger"
    EXTERNAL = "external"


class Activity(StrEnum):
    """What a session does when the trigger comes."""

    IDLE = "idle"  # no turn is under way
    RUNNING = "running"
    WORKING = "working"  # a turn is under way, and commands run for it


class Decider(StrEnum):
    """Who made the choice."""

    RULE = "rule"
    ADVISOR = "advisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the choice depends on. ``urgent`` is by configuration; the text never decides it.

    ``parallel`` says that a side step could be taken beside the turn.
    """

    kind: str
    actor: ActorKind
    trust: Trust
    urgent: bool
    activity: Activity
    parallel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The legal options, the one that was taken, by whom, and what advice it overruled, if any."""

    means: Means
    options: frozenset[Strategy]
    verdict: Strategy
    by: Decider
    overruled: Strategy | None = None


OPERATOR_MESSAGE: Final = "operator.message"
OPERATOR_INTERRUPT: Final = "operator.interrupt"
OPERATOR_QUESTION: Final = "operator.question"

_PEOPLE: Final = frozenset({ActorKind.OPERATOR})
_HUB: Final = frozenset({ActorKind.SYSTEM})

# kind → who may say it, and what it is then; from anybody else it is an ordinary external trigger
_MEANS: Final[Mapping[str, tuple[frozenset[ActorKind], Means]]] = {
    OPERATOR_MESSAGE: (_PEOPLE, Means.USER_INPUT),
    "operator.answer": (_PEOPLE, Means.USER_INPUT),
    "approval.approved": (_PEOPLE, Means.USER_INPUT),
    "approval.denied": (_PEOPLE, Means.USER_INPUT),
    OPERATOR_INTERRUPT: (_PEOPLE, Means.USER_INTERRUPT),
    OPERATOR_QUESTION: (_PEOPLE, Means.USER_QUESTION),
    "supervisor.instruction": (_PEOPLE | _HUB, Means.SUPERVISOR_INSTRUCTION),
    "agent.interrupt": (_HUB, Means.AGENT_INTERRUPT),
    "worker.report": (_HUB, Means.AGENT_INPUT),
    "job.finished": (_HUB, Means.TOOL_RESULT),
    "wait.deadline": (_HUB, Means.TIMER_TRIGGER),
}
_RULE: Final[Mapping[Means, Strategy]] = {
    Means.USER_INTERRUPT: Strategy.CANCEL,
    Means.SUPERVISOR_INSTRUCTION: Strategy.CANCEL,
    Means.AGENT_INTERRUPT: Strategy.CANCEL,
    Means.USER_QUESTION: Strategy.PARALLEL,
}
_CUTS: Final = frozenset(means for means, taken in _RULE.items() if taken is Strategy.CANCEL)


def means(kind: str, actor: ActorKind) -> Means:
    """Say what a trigger is to the session; a kind counts only from those who may say it."""
    sayers, found = _MEANS.get(kind, (frozenset(), Means.EXTERNAL))
    return found if actor in sayers else Means.EXTERNAL


def legal(situation: Situation) -> frozenset[Strategy]:
    """Return the options that there are for this trigger and this session now (B9.1).

    Queueing is always one. Only while a turn runs is there something to cancel or to be beside;
    the hub's own triggers and an operator's are never ignored.
    """
    found = {Strategy.QUEUE}
    own = situation.actor in _PEOPLE | _HUB
    if not own and not situation.urgent:
        found.add(Strategy.IGNORE)
    if situation.activity is Activity.IDLE:
        return frozenset(found)
    said = means(situation.kind, situation.actor)
    if situation.urgent or said in _CUTS or instructs(situation.actor):
        found.add(Strategy.CANCEL)
    is_trusted = situation.trust >= Trust.MEMBER
    if situation.parallel and is_trusted and instructs(situation.actor):
        found.add(Strategy.PARALLEL)
    return frozenset(found)


def choose(situation: Situation, advice: Strategy | None = None) -> Choice:
    """Choose: the advice where it is legal, else the rule where that is, else the queue.

    What the rule cancels for is never left to advice: an interrupt interrupts.
    """
    said, options = means(situation.kind, situation.actor), legal(situation)
    ruled = Strategy.CANCEL if situation.urgent else _RULE.get(said, Strategy.QUEUE)
    verdict = ruled if ruled in options else Strategy.QUEUE
    follows = advice is not None and advice in options and verdict is not Strategy.CANCEL
    if advice is not None and follows:
        return Choice(means=said, options=options, verdict=advice, by=Decider.ADVISOR)
    return Choice(means=said, options=options, verdict=verdict, by=Decider.RULE, overruled=advice)
