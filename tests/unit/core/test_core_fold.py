from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.api import ActorKind
from upright.core.fold import Folding, Quiet, Standing, Window, fold, presses
from upright.core.gate import Judgement, Verdict

QUIET: Final = Quiet(quiet_ms=2_000, most_ms=30_000)
T: Final = 1_000_000
OPEN: Final = Window(opened_ms=T, due_ms=T + 2_000)
BUSY: Final = Window(opened_ms=T, due_ms=T + 3_500)  # something was folded at T + 1 500
ORDINARY: Final = Judgement(verdict=Verdict.CANDIDATE, rule="default", reason="", version="1")


# ------------------------------------------------------------------ what presses
@pytest.mark.parametrize("actor", [ActorKind.MEMBER, ActorKind.STRANGER, ActorKind.BOT])
def test_an_ordinary_trigger_does_not_press(actor: ActorKind) -> None:
    assert not presses(ORDINARY, actor, edits=False)


def test_an_operators_word_a_request_and_what_is_urgent_press() -> None:
    explicit = replace(ORDINARY, verdict=Verdict.EXPLICIT)
    urgent = replace(ORDINARY, urgent=True)
    assert presses(ORDINARY, ActorKind.OPERATOR, edits=False)
    assert presses(explicit, ActorKind.MEMBER, edits=False)
    assert presses(urgent, ActorKind.BOT, edits=False)


@pytest.mark.parametrize(
    ("actor", "is_urgent", "expected"),
    [
        (ActorKind.MEMBER, False, False),
        (ActorKind.OPERATOR, False, True),
        (ActorKind.MEMBER, True, True),
    ],
)
def test_an_edit_is_no_new_request(actor: ActorKind, *, is_urgent: bool, expected: bool) -> None:
    explicit = replace(ORDINARY, verdict=Verdict.EXPLICIT, urgent=is_urgent)
    assert presses(explicit, actor, edits=True) is expected


# ------------------------------------------------------------------ ordinary triggers
def test_the_first_wakes_at_once_and_opens_a_window() -> None:
    assert fold(Standing(), T, QUIET, pressing=False) == Folding(
        window=OPEN, ready_ms=T, folded=False
    )


def test_what_follows_waits_for_quiet_after_the_last() -> None:
    at = T + 1_500
    asleep = fold(Standing(window=OPEN), at, QUIET, pressing=False)
    assert asleep == Folding(window=BUSY, ready_ms=at + 2_000, folded=True)
    again = Standing(window=BUSY, ready_ms=BUSY.due_ms)
    assert fold(again, T + 3_000, QUIET, pressing=False).ready_ms == T + 5_000


def test_the_oldest_never_waits_longer_than_the_most() -> None:
    late = Standing(window=Window(opened_ms=T, due_ms=T + 29_900), ready_ms=T + 29_900)
    assert fold(late, T + 29_800, QUIET, pressing=False).ready_ms == T + 30_000


@pytest.mark.parametrize("ready_ms", [T - 5, T + 2_500])
def test_a_session_that_is_ready_sooner_stays_so(ready_ms: int) -> None:
    standing = Standing(window=OPEN, ready_ms=ready_ms)
    done = fold(standing, T + 1_500, QUIET, pressing=False)
    assert (done.ready_ms, done.folded) == (ready_ms, True)


def test_after_a_window_in_which_nothing_was_folded_the_next_wakes_at_once() -> None:
    at = T + 2_000
    done = fold(Standing(window=OPEN), at, QUIET, pressing=False)
    assert (done.ready_ms, done.folded, done.window) == (
        at,
        False,
        Window(opened_ms=at, due_ms=at + 2_000),
    )


def test_the_wake_at_the_end_of_a_window_begins_the_next() -> None:
    at = BUSY.due_ms + 1_999
    done = fold(Standing(window=BUSY), at, QUIET, pressing=False)
    assert done == Folding(
        window=Window(opened_ms=BUSY.due_ms, due_ms=at + 2_000), ready_ms=at + 2_000, folded=True
    )
    assert not fold(Standing(window=BUSY), at + 1, QUIET, pressing=False).folded


def test_a_wake_that_is_due_already_is_not_put_off_by_what_comes_just_then() -> None:
    at = BUSY.due_ms
    done = fold(Standing(window=BUSY, ready_ms=at), at, QUIET, pressing=False)
    assert (done.ready_ms, done.folded) == (at, True)


def test_a_clock_that_went_back_folds_for_no_longer_than_quiet() -> None:
    ahead = Window(opened_ms=T + 86_400_000, due_ms=T + 86_402_000)
    done = fold(Standing(window=ahead, ready_ms=ahead.due_ms), T, QUIET, pressing=False)
    assert (done.ready_ms, done.window) == (T + 2_001, Window(opened_ms=T, due_ms=T + 2_001))


def test_a_window_of_no_length_folds_nothing() -> None:
    none = Quiet(quiet_ms=0, most_ms=0)
    first = fold(Standing(), T, none, pressing=False)
    assert not first.folded
    assert not fold(Standing(window=first.window), T, none, pressing=False).folded


# ------------------------------------------------------------------ what presses, what has failed
@pytest.mark.parametrize("window", [None, OPEN, BUSY])
@pytest.mark.parametrize("ready_ms", [None, T + 2_000, T + 3_500])
def test_what_presses_wakes_at_once_and_leaves_the_window_as_it_is(
    window: Window | None, ready_ms: int | None
) -> None:
    standing = Standing(window=window, ready_ms=ready_ms, failing=True)
    at = T + 1_000
    assert fold(standing, at, QUIET, pressing=True) == Folding(
        window=window, ready_ms=at, folded=False
    )


def test_a_try_after_a_failure_is_not_hurried_by_an_ordinary_trigger() -> None:
    backing_off = Standing(ready_ms=T + 60_000, failing=True)
    assert fold(backing_off, T, QUIET, pressing=False) == Folding(
        window=None, ready_ms=T + 60_000, folded=False
    )


@pytest.mark.parametrize("ready_ms", [None, T - 1])
def test_a_session_that_failed_and_tries_nothing_is_woken_like_any_other(
    ready_ms: int | None,
) -> None:
    done = fold(Standing(ready_ms=ready_ms, failing=True), T, QUIET, pressing=False)
    assert (done.ready_ms, done.window) == (min(T, ready_ms or T), OPEN)


# ------------------------------------------------------------------ laws
GAPS: Final = st.lists(st.integers(0, 5_000), min_size=1, max_size=80)


@given(gaps=GAPS, slow=st.sampled_from((0, 1)))
def test_wakes_are_never_closer_than_quiet_and_nobody_waits_longer_than_the_most(
    gaps: list[int], slow: int
) -> None:
    standing, now, wakes, waiting = Standing(), T, list[int](), list[int]()

    def until(now_ms: int) -> None:
        nonlocal standing
        if standing.ready_ms is not None and standing.ready_ms <= now_ms:
            wakes.append(standing.ready_ms)
            assert standing.ready_ms - min(waiting) <= QUIET.most_ms
            waiting.clear()
            standing = replace(standing, ready_ms=None)

    for gap in gaps:
        now += gap
        until(now - slow)
        waiting.append(now)
        done = fold(standing, now, QUIET, pressing=False)
        standing = Standing(window=done.window, ready_ms=done.ready_ms)
        until(now + 1 - slow)
    until(now + QUIET.most_ms)
    assert waiting == []
    assert all(after - before >= QUIET.quiet_ms for before, after in pairwise(wakes))
