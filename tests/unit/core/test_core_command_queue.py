"""Command queue: who leaves next; bounded, in order, and fair to every session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.command_queue import Waiting, leave
from upright.core.ids import JobId, SessionId

A, B, C = SessionId("se_a"), SessionId("se_b"), SessionId("se_c")
SESSIONS = st.sampled_from((A, B, C))


def queue(*sessions: SessionId) -> list[Waiting]:
    """Make a queue, oldest first, of commands named by their place."""
    return [Waiting(job=JobId(str(n)), session=session) for n, session in enumerate(sessions)]


def test_the_oldest_leaves_first() -> None:
    assert leave(queue(A, A, A), [], most=2) == ("0", "1")


@pytest.mark.clause("E4.1")
def test_a_session_that_asked_for_much_does_not_starve_another() -> None:
    assert leave(queue(A, A, A, A, B), [A], most=4) == ("4", "0", "1")


@pytest.mark.clause("E4.1")
def test_nothing_leaves_when_all_places_are_taken() -> None:
    assert leave(queue(B), [A, A], most=2) == ()
    assert leave(queue(B), [A, A, A], most=2) == ()


def test_an_empty_queue_sends_nothing() -> None:
    assert leave([], [A]) == ()


@pytest.mark.clause("E4.1")
@given(st.lists(SESSIONS, max_size=30), st.lists(SESSIONS, max_size=8), st.integers(1, 12))
def test_places_are_filled_once_each_and_shared_evenly(
    waiting: list[SessionId], under_way: list[SessionId], most: int
) -> None:
    chosen = leave(queue(*waiting), under_way, most=most)
    assert len(chosen) == len(set(chosen)) == min(len(waiting), max(most - len(under_way), 0))
    held = {name: under_way.count(name) for name in (A, B, C)}
    for job in chosen:
        held[waiting[int(job)]] += 1
    left = {waiting[n] for n in range(len(waiting)) if str(n) not in chosen}
    gained = {waiting[int(job)] for job in chosen}
    for poor in left:  # nobody who still waits has two fewer than somebody who was given a place
        assert all(held[rich] <= held[poor] + 1 for rich in gained if rich != poor)
