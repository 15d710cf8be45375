"""Jobs: slow tool runs; the first terminal writer wins (B10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.core.errors import IllegalMoveError
from upright.core.ids import DeviceId, JobId, SessionId, WorkId
from upright.core.machine import move
from upright_wire.command import Ending


class JobState(StrEnum):
    """The states of a job; the last four are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"


TERMINAL: Final = frozenset({JobState.STOPPED, JobState.FINISHED, JobState.FAILED, JobState.LOST})


@dataclass(frozen=True, slots=True)
class Began:
    """The device started it."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody asked it to stop; the device does the killing."""


@dataclass(frozen=True, slots=True)
class EndedWell:
    """It exited with code 0."""


@dataclass(frozen=True, slots=True)
class EndedBadly:
    """It exited otherwise, or never began."""


@dataclass(frozen=True, slots=True)
class EndedByStop:
    """It ended because it was asked to."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """Nobody can say how it ended."""


JobEvent = Began | StopAsked | EndedWell | EndedBadly | EndedByStop | Vanished

_ENDS: Final[Mapping[type, JobState]] = {
    EndedWell: JobState.FINISHED,
    EndedBadly: JobState.FAILED,
    EndedByStop: JobState.STOPPED,
    Vanished: JobState.LOST,
}
_LIVE: Final = (JobState.QUEUED, JobState.RUNNING, JobState.STOPPING)

TRANSITIONS: Final[Mapping[tuple[JobState, type], JobState]] = {
    (JobState.QUEUED, Began): JobState.RUNNING,
    (JobState.RUNNING, Began): JobState.RUNNING,  # the device says it again after a reconnect
    (JobState.STOPPING, Began): JobState.STOPPING,
    **{(state, StopAsked): JobState.STOPPING for state in _LIVE},
    **{(state, event): end for state in _LIVE for event, end in _ENDS.items()},
}

_BY_STOP: Final = frozenset({Ending.CANCELLED, Ending.KILLED})


def end_event(ending: Ending, code: int | None) -> JobEvent:
    """Translate the device's final into the job's event; *code* counts for EXITED only."""
    if ending is Ending.LOST:
        return Vanished()
    if ending in _BY_STOP:
        return EndedByStop()
    if ending is Ending.EXITED and code == 0:
        return EndedWell()
    return EndedBadly()


def step(state: JobState, event: JobEvent) -> JobState:
    """Move a job; IllegalMoveError when it has ended already."""
    return move(TRANSITIONS, state, event)


def may(state: JobState, event: JobEvent) -> bool:
    """Say whether the move is legal: a late report of an ended job is not, and changes nothing."""
    try:
        step(state, event)
    except IllegalMoveError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is stored; ``stdout_bytes`` and ``stderr_bytes`` are what is here so far.

    ``stdin_bytes`` is the size of its input, which is kept apart: a row that changes with each
    piece of output must be small.
    """

    id: JobId
    session: SessionId
    work: WorkId
    call_id: str
    turn: str
    device: DeviceId
    state: JobState
    spec_json: str
    digest: str
    stdin_bytes: int
    background: bool
    epoch: int
    outcome: str
    code: int | None
    started: str
    detail_json: str
    sent: bool
    reported: bool
    stdout_bytes: int
    stderr_bytes: int
    created_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None
    pruned_at_ms: int | None = None  # its output is gone since then

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL
