"""The command table: every pair of state and event, every end, every exec."""

from __future__ import annotations

import itertools

import pytest

from upright_wire.command import (
    ENDINGS,
    EXPLAINED,
    NUMBERED,
    STARTED_OF,
    TRANSITIONS,
    Allow,
    Ask,
    Begin,
    End,
    Ending,
    Event,
    Offer,
    Outcome,
    Refusal,
    Refuse,
    Replay,
    Start,
    Started,
    State,
    admit,
    later,
    may_end,
    step,
)
from upright_wire.errors import FrameError, IllegalMoveError


def outcome(ending: Ending, started: Started) -> Outcome:
    return Outcome(
        ending=ending,
        started=started,
        number=1 if ending in NUMBERED else None,
        text="rule" if ending in EXPLAINED else None,
    )


EVENTS: tuple[Event, ...] = (
    Ask(),
    Allow(),
    Begin(pid=1),
    End(outcome=outcome(Ending.CANCELLED, Started.NO)),
    End(outcome=outcome(Ending.CANCELLED, Started.YES)),
)
LEGAL = {
    (State.RECEIVED, 0): State.AWAITING_CONSENT,
    (State.RECEIVED, 1): State.ACCEPTED,
    (State.RECEIVED, 3): State.FINAL,
    (State.AWAITING_CONSENT, 1): State.ACCEPTED,
    (State.AWAITING_CONSENT, 3): State.FINAL,
    (State.ACCEPTED, 2): State.STARTED,
    (State.ACCEPTED, 3): State.FINAL,
    (State.STARTED, 4): State.FINAL,
}


@pytest.mark.clause("E4.4")
@pytest.mark.parametrize("number", range(len(EVENTS)))
@pytest.mark.parametrize("state", State)
def test_every_pair_of_state_and_event_moves_or_is_refused(state: State, number: int) -> None:
    event = EVENTS[number]
    if (state, number) in LEGAL:
        assert step(state, event) is LEGAL[state, number]
    else:
        with pytest.raises(IllegalMoveError):
            step(state, event)


def test_the_table_holds_what_the_pairs_say_and_nothing_else() -> None:
    assert {
        (state, type(EVENTS[number])): after for (state, number), after in LEGAL.items()
    } == TRANSITIONS


RUN = {Ending.EXITED, Ending.SIGNALED, Ending.TIMED_OUT, Ending.KILLED}
UNRUN = {Ending.DENIED, Ending.EXPIRED, Ending.SPAWN_FAILED}


@pytest.mark.clause("E4.4")
@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("state", State)
def test_what_ran_ends_as_run_and_what_did_not_does_not(state: State, ending: Ending) -> None:
    possible = {
        started for started in STARTED_OF[ending] if may_end(state, outcome(ending, started))
    }
    if state is State.FINAL:
        assert not possible
    elif state is State.STARTED:
        assert possible == (set() if ending in UNRUN else {Started.YES})
    elif ending in RUN or (ending is Ending.SPAWN_FAILED and state is State.AWAITING_CONSENT):
        assert not possible
    else:
        assert possible == STARTED_OF[ending] - {Started.YES}


@pytest.mark.clause("E4.4")
@pytest.mark.parametrize("started", Started)
@pytest.mark.parametrize("ending", Ending)
def test_an_outcome_that_contradicts_itself_can_not_be_made(
    ending: Ending, started: Started
) -> None:
    if started in STARTED_OF[ending]:
        assert outcome(ending, started).started is started
    else:
        with pytest.raises(FrameError):
            outcome(ending, started)


@pytest.mark.clause("E4.4")
@pytest.mark.parametrize("ending", Ending)
def test_an_outcome_carries_the_number_and_the_reason_that_its_ending_needs(
    ending: Ending,
) -> None:
    started = next(iter(STARTED_OF[ending]))
    number = None if ending in NUMBERED else 1
    with pytest.raises(FrameError):
        Outcome(ending=ending, started=started, number=number, text="why")
    if ending in EXPLAINED:
        with pytest.raises(FrameError):
            Outcome(ending=ending, started=started)


def test_every_state_says_how_it_may_end() -> None:
    assert set(ENDINGS) == set(State)
    assert set(STARTED_OF) == set(Ending)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(State, State)))
def test_the_far_side_never_goes_back(one: State, two: State) -> None:
    order = list(State)
    assert later(one, two) is order[max(order.index(one), order.index(two))]


# ------------------------------------------------------------------ admission
def offer(digest: str = "a", actual: str = "a", epoch: int = 5) -> Offer:
    return Offer(digest=digest, actual_digest=actual, lease_epoch=epoch)


def test_an_unknown_command_is_taken_up() -> None:
    assert admit(offer(), known_digest=None, newest_epoch=5) == Start()


@pytest.mark.clause("E4.3")
def test_the_same_command_again_is_replayed_whatever_the_epoch() -> None:
    assert admit(offer(epoch=1), known_digest="a", newest_epoch=5) == Replay()


@pytest.mark.clause("E4.3")
def test_the_same_id_with_another_digest_is_a_conflict() -> None:
    refused = admit(offer(), known_digest="b", newest_epoch=0)
    assert refused == Refuse(refusal=Refusal.CONFLICT)


@pytest.mark.clause("E4.1")
def test_an_older_epoch_is_refused() -> None:
    refused = admit(offer(epoch=4), known_digest=None, newest_epoch=5)
    assert refused == Refuse(refusal=Refusal.STALE_EPOCH)


@pytest.mark.clause("E4.1")
def test_a_spec_that_is_not_what_its_digest_says_is_refused_first() -> None:
    refused = admit(offer(actual="b"), known_digest="a", newest_epoch=9)
    assert refused == Refuse(refusal=Refusal.BAD_DIGEST)
