from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.laws import law, named, pairs, states
from upright.core.errors import IllegalMoveError, InvalidError
from upright.core.ids import WaitId, WorkId
from upright.core.wait import (
    DEADLINES_S,
    MAX_DEADLINE_S,
    TRANSITIONS,
    OnDeadline,
    Outcome,
    Wait,
    WaitEvent,
    WaitKind,
    WaitState,
    Wake,
    deadline,
    match,
    step,
)

LAW: Final = """
    open: Matched>matched Cancelled>cancelled Expired>expired
    matched
    cancelled
    expired
"""
NOW_MS: Final = 1_700_000_000_000


def wait(
    name: str = "wt_1",
    *,
    kind: WaitKind = WaitKind.JOB,
    ref: str = "jb_1",
    generation: int = 1,
    state: WaitState = WaitState.OPEN,
) -> Wait:
    return Wait(
        id=WaitId(name),
        work=WorkId("wk_1"),
        generation=generation,
        kind=kind,
        ref=ref,
        why="the tests run",
        look_first="the output",
        created_at_ms=NOW_MS,
        deadline_ms=NOW_MS + 1000,
        on_deadline=OnDeadline.LOOK,
        state=state,
    )


JOB_ENDED: Final = Wake(kind=WaitKind.JOB, ref="jb_1")


# ------------------------------------------------------------------ the table
@pytest.mark.clause("B11.4")
@pairs(WaitState, WaitEvent)
def test_a_wait_moves_as_the_law_says_and_not_otherwise(
    state: WaitState, event: type[WaitEvent]
) -> None:
    before = wait(state=state)
    after = law(LAW).get((state.value, event.__name__))
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(before, event())
    else:
        assert step(before, event()) == replace(before, state=WaitState(after))


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)
    assert states(LAW) == set(WaitState)


# ------------------------------------------------------------------ deadlines
@pytest.mark.clause("B11.3")
@pytest.mark.parametrize(
    ("kind", "hours", "then"),
    [
        (WaitKind.JOB, 2, OnDeadline.LOOK),
        (WaitKind.EXTERNAL, 3 * 24, OnDeadline.ASK),
        (WaitKind.OPERATOR, 7 * 24, OnDeadline.REMIND),
        (WaitKind.SYSTEM, 24, OnDeadline.ASK),
    ],
)
def test_each_kind_has_its_default_deadline(kind: WaitKind, hours: int, then: OnDeadline) -> None:
    assert deadline(kind, NOW_MS, None) == (NOW_MS + hours * 3_600_000, then)


def test_every_kind_has_a_deadline() -> None:
    assert set(DEADLINES_S) == set(WaitKind)


@pytest.mark.clause("B11.3")
def test_a_timer_wakes_when_it_is_due_and_must_say_when() -> None:
    assert deadline(WaitKind.TIMER, NOW_MS, 90) == (NOW_MS + 90_000, OnDeadline.WAKE)
    with pytest.raises(InvalidError) as refused:
        deadline(WaitKind.TIMER, NOW_MS, None)
    assert refused.value.data == {"field": "deadline_s", "value": 0}


@pytest.mark.parametrize("asked_s", [0, -1])
def test_a_deadline_that_is_not_in_the_future_is_refused(asked_s: int) -> None:
    with pytest.raises(InvalidError):
        deadline(WaitKind.JOB, NOW_MS, asked_s)


@pytest.mark.clause("B11.3")
@given(kind=st.sampled_from(WaitKind), asked_s=st.integers(min_value=1, max_value=10**12))
def test_every_deadline_lies_ahead_and_within_ninety_days(kind: WaitKind, asked_s: int) -> None:
    at_ms, _ = deadline(kind, NOW_MS, asked_s)
    assert at_ms - NOW_MS == 1000 * min(asked_s, MAX_DEADLINE_S)
    assert 0 < at_ms - NOW_MS <= 90 * 24 * 3_600_000


# ------------------------------------------------------------------ matching
@pytest.mark.clause("B11.4")
def test_the_one_live_wait_of_the_source_matches() -> None:
    other = wait("wt_2", ref="jb_2")
    found = match([other, wait()], JOB_ENDED)
    assert (found.outcome, found.wait) == (Outcome.MATCH, wait())


@pytest.mark.clause("B11.4")
def test_a_wake_that_nobody_waits_for_matches_none() -> None:
    assert match([], JOB_ENDED).outcome is Outcome.NONE
    assert match([wait(ref="jb_2")], JOB_ENDED).outcome is Outcome.NONE


def test_the_same_reference_of_another_kind_is_another_source() -> None:
    assert match([wait(kind=WaitKind.EXTERNAL)], JOB_ENDED).outcome is Outcome.NONE


@pytest.mark.clause("B11.4")
@pytest.mark.parametrize("state", [WaitState.MATCHED, WaitState.CANCELLED, WaitState.EXPIRED])
def test_a_wake_for_a_closed_wait_is_stale(state: WaitState) -> None:
    found = match([wait(state=state)], JOB_ENDED)
    assert (found.outcome, found.wait) == (Outcome.STALE, None)


@pytest.mark.clause("B11.4")
@pytest.mark.parametrize("generation", [0, 2])
def test_a_wake_of_another_generation_is_stale(generation: int) -> None:
    assert match([wait()], replace(JOB_ENDED, generation=generation)).outcome is Outcome.STALE


@pytest.mark.clause("B11.4")
def test_after_a_replaced_wait_only_the_new_generation_matches() -> None:
    old = wait(state=WaitState.CANCELLED)
    new = wait("wt_2", generation=2)
    assert match([old, new], replace(JOB_ENDED, generation=1)).outcome is Outcome.STALE
    assert match([old, new], replace(JOB_ENDED, generation=2)).wait == new
    assert match([old, new], JOB_ENDED).wait == new


@pytest.mark.clause("B11.4")
def test_two_live_waits_of_one_source_are_ambiguous_and_end_neither() -> None:
    found = match([wait(), wait("wt_2")], JOB_ENDED)
    assert (found.outcome, found.wait) == (Outcome.AMBIGUOUS, None)


def test_a_generation_tells_two_live_waits_apart() -> None:
    new = wait("wt_2", generation=2)
    assert match([wait(), new], replace(JOB_ENDED, generation=2)).wait == new


WAITS: Final = st.builds(
    wait,
    st.just("wt"),
    kind=st.sampled_from(WaitKind),
    ref=st.sampled_from(["a", "b"]),
    generation=st.integers(1, 2),
    state=st.sampled_from(WaitState),
)


@pytest.mark.clause("B11.4")
@given(
    waits=st.lists(WAITS, max_size=4),
    wake=st.builds(
        Wake,
        kind=st.sampled_from(WaitKind),
        ref=st.sampled_from(["a", "b"]),
        generation=st.none() | st.integers(1, 2),
    ),
)
def test_only_an_open_wait_of_exactly_this_source_is_ever_ended(
    waits: list[Wait], wake: Wake
) -> None:
    found = match(waits, wake)
    assert (found.wait is not None) is (found.outcome is Outcome.MATCH)
    if found.wait is not None:
        assert found.wait.state is WaitState.OPEN
        assert (found.wait.kind, found.wait.ref) == (wake.kind, wake.ref)
