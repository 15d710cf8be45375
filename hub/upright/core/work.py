"""Work items: a goal with criteria, a plan and a state; it outlives turns (B11).

One table holds every legal move. A change names the revision that it was decided on; a decision
on an older one is refused. Terminal states are final.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from upright.api import Code, Destination
from upright.core.errors import InvalidError, StaleError
from upright.core.ids import SessionId, ThreadId, TriggerId, WorkId
from upright.core.machine import move
from upright.core.mandate import Mandate
from upright.core.wait import WaitKind


class WorkState(StrEnum):
    """The states of a work item; ``completed`` and ``cancelled`` are terminal."""

    RUNNABLE = "runnable"
    YIELDED = "yielded"
    WAITING_OPERATOR = "waiting_operator"
    WAITING_JOB = "waiting_job"
    WAITING_EXTERNAL = "waiting_external"
    WAITING_TIMER = "waiting_timer"
    WAITING_SYSTEM = "waiting_system"
    BLOCKED = "blocked"
    COMPLETING = "completing"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset({WorkState.COMPLETED, WorkState.CANCELLED})
WAITING: Final[Mapping[WaitKind, WorkState]] = {
    WaitKind.JOB: WorkState.WAITING_JOB,
    WaitKind.EXTERNAL: WorkState.WAITING_EXTERNAL,
    WaitKind.TIMER: WorkState.WAITING_TIMER,
    WaitKind.OPERATOR: WorkState.WAITING_OPERATOR,
    WaitKind.SYSTEM: WorkState.WAITING_SYSTEM,
}


# ------------------------------------------------------------------ events
@dataclass(frozen=True, slots=True)
class Woken:
    """Something came: a match, a trigger on its thread, a word of a person."""


@dataclass(frozen=True, slots=True)
class WaitsForJob:
    """A turn ended; a job runs."""


@dataclass(frozen=True, slots=True)
class WaitsForExternal:
    """A turn ended; a thread must move."""


@dataclass(frozen=True, slots=True)
class WaitsForTimer:
    """A turn ended; a time must come."""


@dataclass(frozen=True, slots=True)
class WaitsForOperator:
    """A turn ended; a person must answer."""


@dataclass(frozen=True, slots=True)
class WaitsForSystem:
    """A turn ended; the hub, a device or the model must be there again."""


@dataclass(frozen=True, slots=True)
class Yielded:
    """A child item goes first."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Nothing can go on before somebody removes the reason."""


@dataclass(frozen=True, slots=True)
class Unblocked:
    """Somebody removed the reason."""


@dataclass(frozen=True, slots=True)
class EvidenceGiven:
    """The worker claims to be done and gives evidence for every criterion."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The evidence holds, or a person accepted it."""


@dataclass(frozen=True, slots=True)
class Reopened:
    """The evidence does not hold, or a person sent it back."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person cancelled the item."""


WorkEvent = (
    Woken
    | WaitsForJob
    | WaitsForExternal
    | WaitsForTimer
    | WaitsForOperator
    | WaitsForSystem
    | Yielded
    | Blocked
    | Unblocked
    | EvidenceGiven
    | Accepted
    | Reopened
    | Stopped
)

_LIVE: Final = tuple(state for state in WorkState if state not in TERMINAL)
_SLEEPS: Final = (*WAITING.values(), WorkState.YIELDED)
_RESTS: Final[Mapping[type, WorkState]] = {
    WaitsForJob: WorkState.WAITING_JOB,
    WaitsForExternal: WorkState.WAITING_EXTERNAL,
    WaitsForTimer: WorkState.WAITING_TIMER,
    WaitsForOperator: WorkState.WAITING_OPERATOR,
    WaitsForSystem: WorkState.WAITING_SYSTEM,
}

TRANSITIONS: Final[Mapping[tuple[WorkState, type], WorkState]] = {
    (WorkState.RUNNABLE, Woken): WorkState.RUNNABLE,
    **{(state, Woken): WorkState.RUNNABLE for state in _SLEEPS},
    (WorkState.COMPLETING, Woken): WorkState.COMPLETING,
    (WorkState.BLOCKED, Woken): WorkState.BLOCKED,
    **{(WorkState.RUNNABLE, event): state for event, state in _RESTS.items()},
    (WorkState.RUNNABLE, Yielded): WorkState.YIELDED,
    **{(state, Blocked): WorkState.BLOCKED for state in (WorkState.RUNNABLE, *_SLEEPS)},
    (WorkState.BLOCKED, Unblocked): WorkState.RUNNABLE,
    (WorkState.RUNNABLE, EvidenceGiven): WorkState.COMPLETING,
    (WorkState.COMPLETING, Accepted): WorkState.COMPLETED,
    (WorkState.COMPLETING, Reopened): WorkState.RUNNABLE,
    **{(state, Stopped): WorkState.CANCELLED for state in _LIVE},
}

WAITS_FOR: Final[Mapping[WaitKind, WorkEvent]] = {
    WaitKind.JOB: WaitsForJob(),
    WaitKind.EXTERNAL: WaitsForExternal(),
    WaitKind.TIMER: WaitsForTimer(),
    WaitKind.OPERATOR: WaitsForOperator(),
    WaitKind.SYSTEM: WaitsForSystem(),
}


# ------------------------------------------------------------------ the item
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step of a plan."""

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Proof for one criterion: a job, a commit, a check or a receipt."""

    criterion: str
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """A goal, what counts as done, and how far it is.

    ``trigger`` is the one that opened it, and there is one item a trigger (B5.2). ``destination``
    is where its replies go, fixed when it was opened.
    """

    id: WorkId
    session: SessionId
    trigger: TriggerId
    thread: ThreadId
    goal: str
    criteria: tuple[str, ...]
    mandate: Mandate
    state: WorkState = WorkState.RUNNABLE
    revision: int = 0
    generation: int = 0  # of its waits
    plan: tuple[PlanStep, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    destination: Destination | None = None
    code: Code | None = None
    reason: str = ""  # why it is in this state


class WorkEffect(StrEnum):
    """What must happen in the same transaction as the move."""

    CANCEL_WAITS = "cancel_waits"
    STOP_JOBS = "stop_jobs"
    WITHDRAW_QUESTIONS = "withdraw_questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A moved item, and the effects that belong to the move."""

    item: WorkItem
    effects: frozenset[WorkEffect] = frozenset()


def step(item: WorkItem, event: WorkEvent, *, revision: int, reason: str = "") -> Step:
    """Move an item that was seen at *revision*.

    Raises:
        StaleError: the item has moved since.
        IllegalMoveError: its state has no such move.
        InvalidError: evidence is missing for a criterion.
    """
    if item.revision != revision:
        raise StaleError(item=item.id, seen=revision, now=item.revision)
    state = move(TRANSITIONS, item.state, event)
    if isinstance(event, EvidenceGiven):
        check_evidence(item)
    moved = replace(item, state=state, revision=item.revision + 1, reason=reason)
    ended = state in TERMINAL
    return Step(item=moved, effects=frozenset(WorkEffect) if ended else frozenset())


def check_evidence(item: WorkItem) -> None:
    """Raise InvalidError unless each criterion has evidence (B11.11)."""
    given = {evidence.criterion for evidence in item.evidence if evidence.proof.strip()}
    missing = [criterion for criterion in item.criteria if criterion not in given]
    if missing:
        raise InvalidError(field="evidence", missing="; ".join(missing))
