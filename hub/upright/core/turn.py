"""Turn: what a session does next, decided from what is stored and nothing else (B8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from upright.core.budget import NOTHING, Amounts, Used, reached
from upright.core.transcript import Message, Role, ToolCall, unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one turn; reaching one stops it at a safe point, with the reason (B13.1).

    ``caps``: of what it uses in all; see :mod:`upright.core.budget`.
    """

    max_steps: int = 60
    max_same_results: int = 3
    max_nudges: int = 1
    caps: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the decision needs.

    ``started`` maps a call that has begun a job to whether the job must still be awaited.
    ``settled`` says that the turn may rest: the work item waits, is over, or there is none.
    ``results`` maps an answered call to a digest of its result, ids and times left out.
    ``ending`` are the answered calls whose tool says that the model has nothing to add (a wait, a
    completion): the turn may rest without asking it again. ``over``: the work item is terminal.
    ``inbox`` is how much is due; ``folded`` how much may be taken along when there is a step
    anyway: it is no reason for one (B2.5).
    ``urgent``: something in the inbox cuts the step under way short (B9.3). ``beside`` counts the
    questions that side steps answer, ``asides`` what they have answered already (B9.5).
    """

    messages: Sequence[Message]
    inbox: int
    steps: int
    nudges: int
    settled: bool
    started: Mapping[str, bool]
    results: Mapping[str, str]
    ending: frozenset[str] = frozenset()
    over: bool = False
    folded: int = 0
    urgent: bool = False
    beside: int = 0
    asides: int = 0
    used: Used = NOTHING


@dataclass(frozen=True, slots=True)
class TakeInbox:
    """Append what has come, as one batch."""


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model for the next step."""


@dataclass(frozen=True, slots=True)
class RunCall:
    """Run one tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class AwaitJobs:
    """Wait a bounded time for the jobs of these calls; then write the result or a placeholder."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class CutShort:
    """Answer these calls at once: what runs is asked to stop, what has not begun never begins."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class AwaitSide:
    """The turn has nothing more to do, but a side step still answers: wait for it, or for news."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Begin a new generation of the transcript, before anything is taken (B5.5).

    Only a turn that begins does this: ``core.compaction.due`` says when.
    """


@dataclass(frozen=True, slots=True)
class Nudge:
    """Tell the model that the item neither waits nor is done (B8.7)."""


class Ending(StrEnum):
    """How a turn ends."""

    REST = "rest"
    UNSETTLED = "unsettled"  # nothing would wake it: a person is asked
    NO_PROGRESS = "no_progress"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Rest:
    """End the turn; ``reason`` says which of several bounds it reached."""

    ending: Ending
    reason: str = ""


Action = TakeInbox | CallModel | RunCall | AwaitJobs | CutShort | AwaitSide | Compact | Nudge | Rest


def next_action(view: View, limits: Limits) -> Action:
    """Decide what to do next; every point between two actions is a commit.

    Calls come first, in their order; all are begun before any job is awaited. The inbox is taken
    at safe points only, thus when no call is open; what is urgent makes one.
    """
    open_calls = unanswered(view.messages)
    if open_calls and view.urgent:
        return CutShort(open_calls)
    for call in open_calls:
        if call.id not in view.started:
            return RunCall(call)
    if open_calls:
        return AwaitJobs(open_calls)
    action = _at_safe_point(view, limits)
    return AwaitSide() if view.beside and isinstance(action, Rest) else action


def _at_safe_point(view: View, limits: Limits) -> Action:
    if view.over:
        return Rest(Ending.REST)
    return TakeInbox() if view.inbox else _go_on(view, limits)


def _go_on(view: View, limits: Limits) -> Action:
    if stuck(view, limits.max_same_results):
        return Rest(Ending.NO_PROGRESS)
    if _ended(view.messages) or (view.settled and _last_calls(view.messages) & view.ending):
        return _rest(view, limits)
    if view.steps >= limits.max_steps:
        return Rest(Ending.TOO_LONG, f"{view.steps} of {limits.max_steps} steps in one turn")
    if over := reached(view.used, limits.caps):
        return Rest(Ending.TOO_LONG, over)
    return TakeInbox() if view.folded or view.asides else CallModel()


def _rest(view: View, limits: Limits) -> Action:
    if view.settled:
        return Rest(Ending.REST)
    if view.folded:
        return TakeInbox()  # better than a nudge: it is news
    if view.nudges < limits.max_nudges:
        return Nudge()
    return Rest(Ending.UNSETTLED)


def _last_role(messages: Sequence[Message]) -> Role | None:
    return messages[-1].role if messages else None


def _last_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Return the calls of the step that the transcript ends with; none behind other messages."""
    if _last_role(messages) is not Role.TOOL:
        return frozenset()
    asked = next(m for m in reversed(messages) if m.role is Role.ASSISTANT)
    return frozenset(call.id for call in asked.calls)


def _ended(messages: Sequence[Message]) -> bool:
    """Say whether the model spoke last and called nothing, or nothing was said to it yet."""
    if not messages or messages[-1].role is Role.SYSTEM:
        return True
    return messages[-1].role is Role.ASSISTANT and not messages[-1].calls


def stuck(view: View, times: int) -> bool:
    """Say whether the same (tool, arguments, result) came *times* in a row at the end (B10.4)."""
    done = [
        (call.name, call.arguments, view.results[call.id])
        for message in view.messages
        for call in message.calls
        if call.id in view.results
    ]
    last = done[-times:]
    return len(last) == times and len(set(last)) == 1 and _last_role(view.messages) is Role.TOOL
