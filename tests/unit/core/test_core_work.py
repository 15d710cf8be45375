from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from fixtures.laws import events, law, named, pairs, states
from upright.core.errors import IllegalMoveError, InvalidError, StaleError
from upright.core.ids import SessionId, ThreadId, TriggerId, WorkId
from upright.core.mandate import Mandate, Trust
from upright.core.wait import WaitKind
from upright.core.work import (
    TERMINAL,
    TRANSITIONS,
    WAITING,
    WAITS_FOR,
    Accepted,
    Blocked,
    Evidence,
    EvidenceGiven,
    PlanStep,
    Reopened,
    Stopped,
    Unblocked,
    WaitsForExternal,
    Woken,
    WorkEffect,
    WorkEvent,
    WorkItem,
    WorkState,
    check_evidence,
    step,
)

# B11.1 and B11.2: an item rests for one of five sources, or for a child; every sleep can be woken,
# blocked or stopped; blocked ends only when somebody removes the reason; done needs acceptance.
LAW: Final = """
    runnable: Woken>runnable WaitsForJob>waiting_job WaitsForExternal>waiting_external \
WaitsForTimer>waiting_timer WaitsForOperator>waiting_operator WaitsForSystem>waiting_system \
Yielded>yielded Blocked>blocked EvidenceGiven>completing Stopped>cancelled
    yielded: Woken>runnable Blocked>blocked Stopped>cancelled
    waiting_operator: Woken>runnable Blocked>blocked Stopped>cancelled
    waiting_job: Woken>runnable Blocked>blocked Stopped>cancelled
    waiting_external: Woken>runnable Blocked>blocked Stopped>cancelled
    waiting_timer: Woken>runnable Blocked>blocked Stopped>cancelled
    waiting_system: Woken>runnable Blocked>blocked Stopped>cancelled
    blocked: Woken>blocked Unblocked>runnable Stopped>cancelled
    completing: Woken>completing Accepted>completed Reopened>runnable Stopped>cancelled
    completed
    cancelled
"""


def item(state: WorkState = WorkState.RUNNABLE, *, revision: int = 0) -> WorkItem:
    if (state, revision) != (WorkState.RUNNABLE, 0):
        return replace(item(), state=state, revision=revision)
    return WorkItem(
        id=WorkId("wk_1"),
        session=SessionId("se_1"),
        trigger=TriggerId("tr_1"),
        thread=ThreadId("th_1"),
        goal="Make the tests green",
        criteria=("the tests pass", "it is told"),
        mandate=Mandate(given_by="operator", trust=Trust.OPERATOR),
    )


PROVEN: Final = (
    Evidence(criterion="the tests pass", proof="jb_1"),
    Evidence(criterion="it is told", proof="ob_1"),
)


@pytest.mark.clause("B11.1", "B11.2")
@pairs(WorkState, WorkEvent)
def test_an_item_moves_as_the_law_says_and_not_otherwise(
    state: WorkState, event: type[WorkEvent]
) -> None:
    before = replace(item(state), evidence=PROVEN)
    after = law(LAW).get((state.value, event.__name__))
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(before, event(), revision=0)
    else:
        assert step(before, event(), revision=0).item.state == after


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)


def test_the_law_knows_every_state() -> None:
    assert states(LAW) == set(WorkState)


@pytest.mark.clause("B11.6")
@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_terminal_state_refuses_everything(state: WorkState) -> None:
    for event in events(WorkEvent):
        with pytest.raises(IllegalMoveError):
            step(item(state), event(), revision=0)


def test_the_terminal_states_are_the_ones_without_a_way_out() -> None:
    with_a_way_out = {state for state, _ in law(LAW)}
    assert set(WorkState) - with_a_way_out == TERMINAL == {"completed", "cancelled"}


@pytest.mark.clause("B11.8")
@pytest.mark.parametrize("state", sorted(set(WorkState) - TERMINAL))
def test_from_every_live_state_an_item_can_be_stopped(state: WorkState) -> None:
    assert step(item(state), Stopped(), revision=0).item.state is WorkState.CANCELLED


@pytest.mark.clause("B11.2")
def test_a_wake_does_not_lift_a_block_but_the_removed_reason_does() -> None:
    blocked = item(WorkState.BLOCKED)
    assert step(blocked, Woken(), revision=0).item.state is WorkState.BLOCKED
    assert step(blocked, Unblocked(), revision=0).item.state is WorkState.RUNNABLE


@pytest.mark.clause("B11.6")
def test_a_move_counts_the_revision_and_keeps_the_reason() -> None:
    moved = step(item(revision=4), Blocked(), revision=4, reason="no device").item
    assert (moved.revision, moved.reason) == (5, "no device")


def test_a_move_without_a_reason_forgets_the_old_one() -> None:
    before = replace(item(WorkState.WAITING_SYSTEM), reason="the device is away")
    assert not step(before, Woken(), revision=0).item.reason


@pytest.mark.clause("B11.6")
@pytest.mark.parametrize("seen", [2, 4])
def test_a_decision_on_another_revision_is_refused(seen: int) -> None:
    with pytest.raises(StaleError) as refused:
        step(item(revision=3), Woken(), revision=seen)
    assert refused.value.data == {"item": "wk_1", "seen": seen, "now": 3}


def test_a_stale_decision_is_called_stale_even_where_the_move_is_illegal() -> None:
    with pytest.raises(StaleError):
        step(item(WorkState.COMPLETED, revision=3), Woken(), revision=2)


@pytest.mark.parametrize(
    ("state", "event"),
    [(WorkState.COMPLETING, Accepted()), (WorkState.WAITING_JOB, Stopped())],
    ids=["completed", "cancelled"],
)
def test_the_end_cancels_waits_stops_jobs_and_withdraws_questions(
    state: WorkState, event: WorkEvent
) -> None:
    assert step(item(state), event, revision=0).effects == {
        WorkEffect.CANCEL_WAITS,
        WorkEffect.STOP_JOBS,
        WorkEffect.WITHDRAW_QUESTIONS,
    }


def test_a_move_that_ends_nothing_has_no_effects() -> None:
    assert step(item(), WaitsForExternal(), revision=0).effects == frozenset()
    assert step(item(WorkState.COMPLETING), Reopened(), revision=0).effects == frozenset()


@pytest.mark.clause("B11.11")
def test_evidence_for_every_criterion_lets_an_item_be_completing() -> None:
    proven = replace(item(), evidence=PROVEN)
    assert step(proven, EvidenceGiven(), revision=0).item.state is WorkState.COMPLETING


@pytest.mark.clause("B11.11")
@pytest.mark.parametrize(
    ("evidence", "missing"),
    [
        ((), "the tests pass; it is told"),
        (PROVEN[:1], "it is told"),
        ((PROVEN[0], Evidence(criterion="it is told", proof=" \n")), "it is told"),
        ((PROVEN[0], Evidence(criterion="something else", proof="jb_2")), "it is told"),
    ],
    ids=["none", "one", "blank proof", "another criterion"],
)
def test_a_criterion_without_proof_is_refused_and_named(
    evidence: tuple[Evidence, ...], missing: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        step(replace(item(), evidence=evidence), EvidenceGiven(), revision=0)
    assert refused.value.data == {"field": "evidence", "missing": missing}


def test_an_item_without_criteria_needs_no_evidence() -> None:
    check_evidence(replace(item(), criteria=()))


def test_evidence_is_asked_for_only_when_it_is_claimed() -> None:
    assert step(item(), Woken(), revision=0).item.evidence == ()


def test_a_new_item_is_runnable_and_begins_at_nothing() -> None:
    new = item()
    assert (new.state, new.revision, new.generation) == (WorkState.RUNNABLE, 0, 0)
    assert (new.plan, new.evidence, new.reason) == ((), (), "")
    assert PlanStep(text="look").done is False


@pytest.mark.clause("B11.3")
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (WaitKind.JOB, "waiting_job"),
        (WaitKind.EXTERNAL, "waiting_external"),
        (WaitKind.TIMER, "waiting_timer"),
        (WaitKind.OPERATOR, "waiting_operator"),
        (WaitKind.SYSTEM, "waiting_system"),
    ],
)
def test_each_kind_of_wait_has_its_event_and_its_state(kind: WaitKind, state: str) -> None:
    assert step(item(), WAITS_FOR[kind], revision=0).item.state == WAITING[kind] == state


def test_every_kind_of_wait_is_mapped() -> None:
    assert set(WAITS_FOR) == set(WAITING) == set(WaitKind)
