"""Reconcile: what a device holds against the rows, case by case (E5.4, E7)."""

from __future__ import annotations

import pytest

from upright.core.ids import DeviceId, JobId, SessionId, WorkId
from upright.core.job import TERMINAL, Job, JobState
from upright.devices.ports import Follow
from upright.devices.reconcile import FORGOTTEN, NEVER_RAN, Reconciled, reconcile
from upright_wire.command import State
from upright_wire.frames import Held

LIVE = [state for state in JobState if state not in TERMINAL]


def job(
    state: JobState, *, name: str = "jb_1", sent: bool = True, started: str = "no", stdin: int = 0
) -> Job:
    """Make a job of which 10 bytes of output and 3 of errors are stored."""
    return Job(
        id=JobId(name),
        session=SessionId("se_1"),
        work=WorkId("wk_1"),
        call_id="c",
        turn="tu",
        device=DeviceId("dv_1"),
        state=state,
        spec_json="{}",
        digest="d",
        stdin_bytes=stdin,
        background=False,
        epoch=1,
        outcome="",
        code=None,
        started=started,
        detail_json="{}",
        sent=sent,
        reported=False,
        stdout_bytes=10,
        stderr_bytes=3,
        created_at_ms=1,
        started_at_ms=None,
        ended_at_ms=None,
    )


def held(name: str = "jb_1", *, stdin: int = 0) -> dict[str, Held]:
    return {name: Held(command_id=name, digest="d", state=State.STARTED, stdin=stdin)}


def alone(found: Reconciled) -> tuple[object, ...]:
    """Return all that follows, to compare it whole."""
    plan = found.plan
    ends = tuple((one.id, outcome) for one, outcome in found.ends)
    return plan.follow, plan.cancel, plan.forget, ends, tuple(one.id for one in found.settled)


@pytest.mark.clause("E5.4", "E7.1", "E7.3")
@pytest.mark.parametrize("state", LIVE)
def test_what_both_know_is_followed_from_the_stored_offsets(state: JobState) -> None:
    found = reconcile([job(state, started="yes")], held(), ())
    assert found.plan.follow == (Follow(command_id="jb_1", stdout=10, stderr=3),)
    assert found.carried == {"jb_1"}
    assert not found.ends
    assert not found.settled
    assert found.plan.forget == ()


@pytest.mark.clause("E5.4")
@pytest.mark.parametrize("state", LIVE)
def test_only_a_stopping_one_is_cancelled_again(state: JobState) -> None:
    found = reconcile([job(state)], held(), ())
    assert found.plan.cancel == (("jb_1",) if state is JobState.STOPPING else ())


@pytest.mark.clause("E7.2")
def test_a_command_that_never_arrived_is_sent_again() -> None:
    found = reconcile([job(JobState.QUEUED)], {}, ())
    assert alone(found) == ((), (), (), (), ())
    assert found.carried == frozenset()


@pytest.mark.clause("B8.6", "E4.4")
@pytest.mark.parametrize("started", ["yes", "no", "unknown"])
def test_a_running_one_that_is_gone_is_lost_and_may_have_run(started: str) -> None:
    found = reconcile([job(JobState.RUNNING, started=started)], {}, ())
    assert alone(found) == ((), (), (), (("jb_1", FORGOTTEN),), ())


def test_a_stopping_one_that_had_started_and_is_gone_is_lost() -> None:
    found = reconcile([job(JobState.STOPPING, started="yes")], {}, ())
    assert alone(found) == ((), (), (), (("jb_1", FORGOTTEN),), ())


@pytest.mark.clause("E6.1", "E7.5")
def test_a_stopping_one_that_never_arrived_never_ran_and_is_fenced() -> None:
    found = reconcile([job(JobState.STOPPING)], {}, ())
    assert alone(found) == ((), ("jb_1",), (), (("jb_1", NEVER_RAN),), ())


def test_a_stopping_one_that_never_left_needs_no_fence() -> None:
    found = reconcile([job(JobState.STOPPING, sent=False)], {}, ())
    assert alone(found) == ((), (), (), (("jb_1", NEVER_RAN),), ())


@pytest.mark.clause("E5.4")
@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_is_over_here_is_forgotten_there_or_settled(state: JobState) -> None:
    assert alone(reconcile([job(state)], held(), ())) == ((), (), ("jb_1",), (), ())
    assert alone(reconcile([job(state)], {}, ())) == ((), (), (), (), ("jb_1",))


@pytest.mark.clause("E5.4")
def test_what_was_settled_before_is_forgotten() -> None:
    assert alone(reconcile([], held("jb_9"), ["jb_9"])) == ((), (), ("jb_9",), (), ())


@pytest.mark.clause("E7.11")
def test_what_the_rows_do_not_know_is_foreign_and_left_alone() -> None:
    found = reconcile([job(JobState.RUNNING)], held() | held("jb_foreign"), ())
    assert [one.command_id for one in found.plan.follow] == ["jb_1"]
    assert (found.plan.cancel, found.plan.forget) == ((), ())


@pytest.mark.clause("E4.6")
@pytest.mark.parametrize(("has", "wanted"), [(0, [0]), (3, [3]), (5, [])])
def test_input_is_sent_on_from_where_the_device_has_it(has: int, wanted: list[int]) -> None:
    found = reconcile([job(JobState.QUEUED, stdin=5)], held(stdin=has), ())
    assert [offset for _, offset in found.inputs] == wanted


def test_input_of_what_is_absent_goes_with_its_command() -> None:
    assert reconcile([job(JobState.QUEUED, stdin=5)], {}, ()).inputs == ()


def test_each_command_is_judged_by_itself() -> None:
    mine = [
        job(JobState.RUNNING, name="jb_here"),
        job(JobState.RUNNING, name="jb_gone", started="yes"),
        job(JobState.FINISHED, name="jb_done"),
        job(JobState.QUEUED, name="jb_new"),
    ]
    found = reconcile(mine, held("jb_here") | held("jb_done"), ())
    assert [one.command_id for one in found.plan.follow] == ["jb_here"]
    assert [one.id for one, _ in found.ends] == ["jb_gone"]
    assert found.plan.forget == ("jb_done",)
    assert found.carried == {"jb_here"}
