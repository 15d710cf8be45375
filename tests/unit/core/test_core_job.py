from __future__ import annotations

from typing import Final

import pytest

from fixtures.laws import events, law, named, pairs, states
from upright.core.errors import IllegalMoveError
from upright.core.ids import DeviceId, JobId, SessionId, WorkId
from upright.core.job import (
    TERMINAL,
    TRANSITIONS,
    Began,
    EndedBadly,
    EndedByStop,
    EndedWell,
    Job,
    JobEvent,
    JobState,
    StopAsked,
    Vanished,
    end_event,
    may,
    step,
)
from upright_wire.command import Ending

# B10.2: a stop is a request; the device may report a start again after a reconnect; whichever end
# comes first is the end.
LAW: Final = """
    queued: Began>running StopAsked>stopping EndedWell>finished EndedBadly>failed \
EndedByStop>stopped Vanished>lost
    running: Began>running StopAsked>stopping EndedWell>finished EndedBadly>failed \
EndedByStop>stopped Vanished>lost
    stopping: Began>stopping StopAsked>stopping EndedWell>finished EndedBadly>failed \
EndedByStop>stopped Vanished>lost
    stopped
    finished
    failed
    lost
"""


@pytest.mark.clause("B10.2")
@pairs(JobState, JobEvent)
def test_a_job_moves_as_the_law_says_and_not_otherwise(
    state: JobState, event: type[JobEvent]
) -> None:
    after = law(LAW).get((state.value, event.__name__))
    assert may(state, event()) is (after is not None)
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(state, event())
    else:
        assert step(state, event()) == after


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)
    assert states(LAW) == set(JobState)


@pytest.mark.clause("B10.2")
def test_the_first_terminal_writer_wins() -> None:
    ends = [event for event in events(JobEvent) if event not in {Began, StopAsked}]
    for first in ends:
        ended = step(JobState.STOPPING, first())
        assert ended in TERMINAL
        assert not [late for late in events(JobEvent) if may(ended, late())]


def test_the_terminal_states_are_four() -> None:
    assert {"stopped", "finished", "failed", "lost"} == TERMINAL


@pytest.mark.clause("B10.2", "E6.1")
def test_a_stop_that_races_completion_keeps_the_true_end() -> None:
    asked = step(JobState.RUNNING, StopAsked())
    assert step(asked, end_event(Ending.EXITED, 0)) is JobState.FINISHED


@pytest.mark.clause("E4.4")
@pytest.mark.parametrize(
    ("outcome", "code", "event"),
    [
        (Ending.EXITED, 0, EndedWell()),
        (Ending.EXITED, 1, EndedBadly()),
        (Ending.EXITED, None, EndedBadly()),
        (Ending.SIGNALED, 9, EndedBadly()),
        (Ending.SIGNALED, 0, EndedBadly()),
        (Ending.TIMED_OUT, None, EndedBadly()),
        (Ending.SPAWN_FAILED, 2, EndedBadly()),
        (Ending.DENIED, None, EndedBadly()),
        (Ending.EXPIRED, None, EndedBadly()),
        (Ending.CANCELLED, None, EndedByStop()),
        (Ending.KILLED, None, EndedByStop()),
        (Ending.LOST, None, Vanished()),
    ],
)
def test_each_outcome_of_a_command_ends_its_job_in_one_way(
    outcome: Ending, code: int | None, event: JobEvent
) -> None:
    assert end_event(outcome, code) == event


@pytest.mark.parametrize("state", list(JobState))
def test_a_job_is_over_in_its_terminal_states_only(state: JobState) -> None:
    job = Job(
        id=JobId("jb_1"),
        session=SessionId("se_1"),
        work=WorkId("wk_1"),
        call_id="c1",
        turn="tu_1",
        device=DeviceId("dv_1"),
        state=state,
        spec_json="{}",
        digest="",
        stdin_bytes=0,
        background=False,
        epoch=1,
        outcome="",
        code=None,
        started="unknown",
        detail_json="{}",
        sent=False,
        reported=False,
        stdout_bytes=0,
        stderr_bytes=0,
        created_at_ms=0,
        started_at_ms=None,
        ended_at_ms=None,
    )
    assert job.over is (state in {"stopped", "finished", "failed", "lost"})
