from __future__ import annotations

import pytest

from upright_execd.shim.ending import (
    ASKED,
    DRAIN_S,
    DRAINING,
    KILL,
    KILL_EVERY_S,
    KILL_S,
    KILLING,
    LOOK_EVERY_S,
    NOTHING,
    OVER,
    RUNNING,
    SIGNAL,
    Ending,
)


def ending() -> Ending:
    """An ending that times out at 100 and gives 10 seconds of grace."""
    return Ending(timeout_s=100, grace_s=10, now=0)


def look(
    end: Ending, now: float, *, ended: bool = False, kin: bool = False, open_: bool = True
) -> str:
    return end.look(now, has_ended=ended, has_kin=kin, is_open=open_)


def test_a_command_that_runs_is_left_alone_until_its_time_is_up() -> None:
    end = ending()
    assert (look(end, 99.9), end.phase, end.wait_s(99.0, has_ended=False)) == (
        NOTHING,
        RUNNING,
        1.0,
    )
    assert (look(end, 100), end.phase, end.cause) == (SIGNAL, ASKED, "timed_out")


def test_an_end_with_closed_pipes_is_over_at_once() -> None:
    end = ending()
    assert (look(end, 1, ended=True, open_=False), end.phase) == (NOTHING, OVER)
    assert end.outcome(3) == ("exited", 3)
    assert end.outcome(-9) == ("signaled", 9)


@pytest.mark.clause("E6.2")
def test_an_open_pipe_is_drained_for_a_while_and_no_longer() -> None:
    end = ending()
    look(end, 1, ended=True)
    assert (end.phase, end.wait_s(1, has_ended=True)) == (DRAINING, DRAIN_S)
    look(end, 1 + DRAIN_S - 0.01, ended=True)
    assert end.phase == DRAINING
    look(end, 1 + DRAIN_S, ended=True)
    assert end.phase == OVER


@pytest.mark.clause("E6.1")
def test_a_cancel_signals_once_and_the_first_cause_counts() -> None:
    end = ending()
    assert [end.ask("cancelled", 5), end.ask("cancelled", 6), look(end, 6)] == [
        SIGNAL,
        NOTHING,
        NOTHING,
    ]
    assert (end.phase, end.cause, end.wait_s(5, has_ended=False)) == (ASKED, "cancelled", 10)


@pytest.mark.clause("E6.1")
def test_who_ends_within_the_grace_was_cancelled() -> None:
    end = ending()
    end.ask("cancelled", 5)
    look(end, 7, ended=True, open_=False)
    assert (end.phase, end.outcome(0)) == (OVER, ("cancelled", None))


def test_stragglers_have_the_rest_of_the_grace() -> None:
    end = ending()
    end.ask("cancelled", 5)
    assert (look(end, 7, ended=True, kin=True), end.phase) == (NOTHING, ASKED)
    assert end.wait_s(7, has_ended=True) == LOOK_EVERY_S
    assert (look(end, 15, ended=True, kin=True), end.phase) == (KILL, KILLING)
    assert end.outcome(0) == ("cancelled", None)


@pytest.mark.clause("E6.1", "E6.3")
def test_after_the_grace_it_is_killed_again_and_again_until_none_is_left() -> None:
    end = ending()
    end.ask("cancelled", 5)
    assert [look(end, 15), look(end, 15.1), look(end, 15.2, ended=True, kin=True)] == [KILL] * 3
    assert end.wait_s(15.2, has_ended=True) == KILL_EVERY_S
    look(end, 15.3, ended=True, open_=False)
    assert (end.phase, end.outcome(-9)) == (OVER, ("killed", None))


@pytest.mark.clause("E6.3")
def test_what_cannot_be_killed_does_not_hold_the_end_for_ever() -> None:
    end = ending()
    end.ask("cancelled", 5)
    look(end, 15)
    assert look(end, 15 + KILL_S) == NOTHING
    look(end, 15 + KILL_S + DRAIN_S)
    assert end.phase == OVER


def test_a_time_out_stays_one_even_if_it_took_a_kill() -> None:
    end = ending()
    look(end, 100)
    look(end, 110)
    look(end, 111, ended=True, open_=False)
    assert end.outcome(-9) == ("timed_out", None)


@pytest.mark.clause("E6.1")
@pytest.mark.parametrize("phase", [DRAINING, OVER])
def test_a_cancel_after_the_end_changes_nothing(phase: str) -> None:
    end = ending()
    look(end, 1, ended=True, open_=phase == DRAINING)
    assert (end.phase, end.ask("cancelled", 2), end.outcome(4)) == (phase, NOTHING, ("exited", 4))
