"""Waits: the only place where a wake is matched (B11.3, B11.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from upright.core.errors import InvalidError
from upright.core.ids import WaitId, WorkId
from upright.core.machine import move


class WaitKind(StrEnum):
    """What a work item waits for."""

    JOB = "job_result"
    EXTERNAL = "external"
    TIMER = "timer"
    OPERATOR = "operator"
    SYSTEM = "system"


class OnDeadline(StrEnum):
    """What happens when nothing came until the deadline."""

    LOOK = "look"  # wake the worker, who looks
    ASK = "ask"  # wake the worker, and ask a person
    REMIND = "remind"  # remind the person, then block
    WAKE = "wake"  # the deadline is what was waited for


class WaitState(StrEnum):
    """The states of a wait; all but OPEN are final."""

    OPEN = "open"
    MATCHED = "matched"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Matched:
    """What was waited for came."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The wait is not needed any more."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline passed."""


WaitEvent = Matched | Cancelled | Expired

TRANSITIONS: Final[Mapping[tuple[WaitState, type], WaitState]] = {
    (WaitState.OPEN, Matched): WaitState.MATCHED,
    (WaitState.OPEN, Cancelled): WaitState.CANCELLED,
    (WaitState.OPEN, Expired): WaitState.EXPIRED,
}

_HOUR_S: Final = 3600
_DAY_S: Final = 24 * _HOUR_S
DEADLINES_S: Final[Mapping[WaitKind, tuple[int, OnDeadline]]] = {
    WaitKind.JOB: (2 * _HOUR_S, OnDeadline.LOOK),
    WaitKind.EXTERNAL: (3 * _DAY_S, OnDeadline.ASK),
    WaitKind.TIMER: (0, OnDeadline.WAKE),
    WaitKind.OPERATOR: (7 * _DAY_S, OnDeadline.REMIND),
    WaitKind.SYSTEM: (_DAY_S, OnDeadline.ASK),
}
MAX_DEADLINE_S: Final = 90 * _DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A durable suspension: what for, of which generation, until when, and what then.

    ``ref`` names the source exactly: a job, a thread, a request, or the name of a system fact
    (``device:…``, ``repository:…``, ``model``); empty for a timer. Times are epoch milliseconds.
    """

    id: WaitId
    work: WorkId
    generation: int
    kind: WaitKind
    ref: str
    why: str
    look_first: str
    created_at_ms: int
    deadline_ms: int
    on_deadline: OnDeadline
    state: WaitState = WaitState.OPEN


def deadline(kind: WaitKind, now_ms: int, asked_s: int | None) -> tuple[int, OnDeadline]:
    """Return (deadline, what then): what was asked for within bounds, else the kind's default.

    Raises:
        InvalidError: a deadline in the past, or a timer without a time.
    """
    default_s, then = DEADLINES_S[kind]
    seconds = default_s if asked_s is None else asked_s
    if seconds <= 0:
        raise InvalidError(field="deadline_s", value=seconds)
    return now_ms + 1000 * min(seconds, MAX_DEADLINE_S), then


def step(wait: Wait, event: WaitEvent) -> Wait:
    """Move a wait; a final state refuses everything."""
    return replace(wait, state=move(TRANSITIONS, wait.state, event))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Something that may end a wait: its kind and exact reference; an older generation is stale."""

    kind: WaitKind
    ref: str
    generation: int | None = None


class Outcome(StrEnum):
    """How a wake met the waits of one work item."""

    MATCH = "match"
    STALE = "stale"
    AMBIGUOUS = "ambiguous"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The outcome, and with MATCH the wait that it ends."""

    outcome: Outcome
    wait: Wait | None = None


def match(waits: Sequence[Wait], wake: Wake) -> Match:
    """Match a wake with the waits of one work item, open and closed ones.

    Exactly one live wait of this source: MATCH. Several: AMBIGUOUS, for a person to see. Only
    closed ones, or only of another generation: STALE, recorded and waking nobody. None: NONE.
    """
    named = [wait for wait in waits if (wait.kind, wait.ref) == (wake.kind, wake.ref)]
    live = [
        wait
        for wait in named
        if wait.state is WaitState.OPEN and wake.generation in {None, wait.generation}
    ]
    if len(live) == 1:
        return Match(outcome=Outcome.MATCH, wait=live[0])
    if live:
        return Match(outcome=Outcome.AMBIGUOUS)
    return Match(outcome=Outcome.STALE if named else Outcome.NONE)
