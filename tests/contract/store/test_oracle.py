from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlmodel import SQLModel

from fixtures.databases import connected
from fixtures.store_rows import delivery, job, put, request, session, wait, work
from upright.core.job import JobState
from upright.core.request import RequestState
from upright.core.wait import WaitKind, WaitState
from upright.core.work import TERMINAL, WAITING, WorkState
from upright.store.address import Address
from upright.store.oracle import stalled, unheard
from upright.store.tables import SESSION

LIVE = [state for state in WorkState if state not in TERMINAL]
SLEEPS = [*WAITING.values(), WorkState.YIELDED]
ON_JOB = "jb_a"


@pytest.fixture
def c(address: Address) -> Iterator[sa.Connection]:
    with connected(address) as connection:
        yield connection


def given(c: sa.Connection, state: WorkState, *rows: SQLModel, ready: bool = False) -> list[str]:
    """Store one item with what else there is; return what the oracle says of it."""
    put(c, session("se_a", work="wk_a", ready_at_ms=1 if ready else None))
    put(c, work("wk_a", state, trigger_id="tr_a"), *rows)
    return [found.missing for found in stalled(c) if (found.id, found.state) == ("wk_a", state)]


@pytest.mark.parametrize("state", LIVE)
def test_unfinished_work_with_nothing_at_all_is_listed(c: sa.Connection, state: WorkState) -> None:
    assert len(given(c, state)) == 1


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_finished_work_needs_nothing(c: sa.Connection, state: WorkState) -> None:
    assert not given(c, state)


@pytest.mark.parametrize("state", [s for s in LIVE if s is not WorkState.BLOCKED])
def test_a_session_in_the_queue_will_run(c: sa.Connection, state: WorkState) -> None:
    assert not given(c, state, ready=True)


def test_an_ended_session_will_not_run(c: sa.Connection) -> None:
    given(c, WorkState.RUNNABLE, ready=True)
    c.execute(SESSION.update().values(ended_at_ms=5))
    assert [found.id for found in stalled(c)] == ["wk_a"]


def test_a_lease_alone_brings_nobody_back_after_a_crash(c: sa.Connection) -> None:
    given(c, WorkState.RUNNABLE)
    c.execute(SESSION.update().values(lease_until_ms=99))
    assert [found.id for found in stalled(c)] == ["wk_a"]


@pytest.mark.parametrize("state", SLEEPS)
def test_an_open_wait_ends_by_its_deadline(c: sa.Connection, state: WorkState) -> None:
    assert not given(c, state, wait("wt_a", "wk_a"))


@pytest.mark.parametrize("state", [WorkState.RUNNABLE, WorkState.BLOCKED, WorkState.COMPLETING])
def test_an_open_wait_is_not_enough_for_what_does_not_wait(
    c: sa.Connection, state: WorkState
) -> None:
    assert given(c, state, wait("wt_a", "wk_a"))


@pytest.mark.parametrize("state", [s for s in WaitState if s is not WaitState.OPEN])
def test_a_closed_wait_wakes_nobody(c: sa.Connection, state: WaitState) -> None:
    assert given(c, WorkState.WAITING_EXTERNAL, wait("wt_a", "wk_a", state=state))


@pytest.mark.parametrize("state", list(JobState))
def test_a_wait_for_a_job_needs_one_that_lives(c: sa.Connection, state: JobState) -> None:
    rows = (
        wait("wt_a", "wk_a", kind=WaitKind.JOB, ref=ON_JOB),
        job(ON_JOB, "wk_a", call_id="c", state=state),
    )
    lives = state in {JobState.QUEUED, JobState.RUNNING, JobState.STOPPING}
    assert bool(given(c, WorkState.WAITING_JOB, *rows)) is not lives


def test_a_wait_for_an_ended_job_is_found_behind_a_sound_one(c: sa.Connection) -> None:
    said = given(
        c,
        WorkState.WAITING_EXTERNAL,
        wait("wt_a", "wk_a"),
        wait("wt_b", "wk_a", kind=WaitKind.JOB, ref="jb_gone"),
    )
    assert said == ["it waits for what has ended already"]


@pytest.mark.parametrize(
    "state", [WorkState.BLOCKED, WorkState.COMPLETING, WorkState.WAITING_OPERATOR]
)
def test_an_open_request_is_a_persons_turn(c: sa.Connection, state: WorkState) -> None:
    assert not given(c, state, request("rq_a", "wk_a"))


@pytest.mark.parametrize("state", [s for s in RequestState if s is not RequestState.ASKED])
def test_a_settled_request_brings_nothing(c: sa.Connection, state: RequestState) -> None:
    assert given(c, WorkState.BLOCKED, request("rq_a", "wk_a", state))


def test_what_belongs_to_another_item_does_not_count(c: sa.Connection) -> None:
    put(c, session("se_b", work="wk_b", ready_at_ms=1))
    put(c, work("wk_b", WorkState.RUNNABLE, trigger_id="tr_b"))
    others = (wait("wt_b", "wk_b"), request("rq_b", "wk_b"))
    assert len(given(c, WorkState.WAITING_OPERATOR, *others)) == 1


def test_an_inbox_that_wakes_wants_its_session_in_the_queue(c: sa.Connection) -> None:
    put(c, session("se_a"), delivery("se_a", "tr_a"))
    put(c, session("se_b", ready_at_ms=1), delivery("se_b", "tr_a"))
    put(c, session("se_c"), delivery("se_c", "tr_a", taken_n=3))
    assert [found.id for found in unheard(c)] == ["se_a"]
