from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from fixtures.laws import events, law, named, pairs, states
from upright.core.backoff import Backoff
from upright.core.errors import IllegalMoveError
from upright.core.outbox import (
    TERMINAL,
    TRANSITIONS,
    Abandoned,
    Claimed,
    Delivered,
    Discarded,
    NotDelivered,
    OutboxEvent,
    OutboxItem,
    OutboxState,
    Refused,
    TooLate,
    Uncertain,
    expired,
    revive,
    step,
)

# B15.2 and B15.3: only a claimed effect can become visible; what certainly did not is tried again,
# what may have is unknown for good; a refusal is final at once.
LAW: Final = """
    held: Released>pending Discarded>dead TooLate>expired
    pending: Claimed>sending Discarded>dead TooLate>expired
    sending: Delivered>sent NotDelivered>pending Refused>dead Uncertain>unknown Abandoned>pending
    sent
    unknown
    expired
    dead
"""
NOW_MS: Final = 1_700_000_000_000
SENDING: Final = OutboxItem(state=OutboxState.SENDING, tries=1)


@pytest.mark.clause("B15.2")
@pairs(OutboxState, OutboxEvent)
def test_an_effect_moves_as_the_law_says_and_not_otherwise(
    state: OutboxState, event: type[OutboxEvent]
) -> None:
    before = OutboxItem(state=state)
    after = law(LAW).get((state.value, event.__name__))
    if after is None:
        with pytest.raises(IllegalMoveError):
            step(before, event(), now_ms=NOW_MS)
    else:
        assert step(before, event(), now_ms=NOW_MS).state == after


def test_the_table_holds_the_law_and_no_more() -> None:
    assert named(TRANSITIONS) == law(LAW)
    assert states(LAW) == set(OutboxState)


@pytest.mark.clause("B15.2")
def test_what_is_sent_unknown_expired_or_dead_never_changes() -> None:
    assert {"sent", "unknown", "expired", "dead"} == TERMINAL
    for state in TERMINAL:
        for event in events(OutboxEvent):
            with pytest.raises(IllegalMoveError):
                step(OutboxItem(state=state), event(), now_ms=NOW_MS)


def test_a_new_effect_is_due_at_once_and_was_never_tried() -> None:
    new = OutboxItem(state=OutboxState.PENDING)
    assert (new.tries, new.due_at_ms, new.expires_at_ms) == (0, 0, None)


def test_without_a_pause_a_failed_try_is_due_now() -> None:
    assert step(SENDING, NotDelivered(), now_ms=NOW_MS).due_at_ms == NOW_MS


def test_each_claim_counts_as_a_try_and_nothing_else_does() -> None:
    claimed = step(OutboxItem(state=OutboxState.PENDING, tries=2), Claimed(), now_ms=NOW_MS)
    assert claimed.tries == 3
    for event in (Delivered(), NotDelivered(), Refused(), Uncertain(), Abandoned()):
        assert step(claimed, event, now_ms=NOW_MS).tries == 3


@pytest.mark.clause("B15.3")
def test_a_failed_try_is_due_again_after_its_pause() -> None:
    failed = step(SENDING, NotDelivered(), now_ms=NOW_MS, wait_s=2.5, reason="503")
    assert (failed.state, failed.due_at_ms, failed.reason) == ("pending", NOW_MS + 2500, "503")


def test_a_pause_counts_for_a_failed_try_only() -> None:
    before = replace(SENDING, due_at_ms=7)
    assert step(before, Abandoned(), now_ms=NOW_MS, wait_s=2.5).due_at_ms == 7


@pytest.mark.clause("B15.3")
def test_the_last_failed_try_is_dead_and_says_how_many_there_were() -> None:
    last = replace(SENDING, tries=3)
    dead = step(last, NotDelivered(), now_ms=NOW_MS, backoff=Backoff(max_tries=3), reason="503")
    assert (dead.state, dead.reason) == ("dead", "given up after 3 tries: 503")


@pytest.mark.clause("B15.3")
def test_a_try_before_the_last_one_is_not_given_up() -> None:
    failed = step(
        replace(SENDING, tries=2), NotDelivered(), now_ms=NOW_MS, backoff=Backoff(max_tries=3)
    )
    assert failed.state is OutboxState.PENDING


def test_the_last_try_may_still_be_delivered() -> None:
    last = replace(SENDING, tries=3)
    sent = step(last, Delivered(), now_ms=NOW_MS, backoff=Backoff(max_tries=3))
    assert sent.state is OutboxState.SENT


@pytest.mark.clause("B15.3")
def test_a_poisoned_effect_ends_after_bounded_tries() -> None:
    item, backoff = OutboxItem(state=OutboxState.PENDING), Backoff(max_tries=4)
    moves = 0
    while item.state not in TERMINAL:
        event = Claimed() if item.state is OutboxState.PENDING else NotDelivered()
        item = step(item, event, now_ms=NOW_MS, backoff=backoff)
        moves += 1
    assert (item.state, item.tries, moves) == ("dead", 4, 8)


@pytest.mark.clause("B15.3")
@pytest.mark.parametrize(
    ("expires_at_ms", "late"),
    [(None, False), (NOW_MS + 1, False), (NOW_MS, True), (NOW_MS - 1, True)],
    ids=["never", "later", "now", "past"],
)
def test_an_effect_is_too_late_from_its_time_on(*, expires_at_ms: int | None, late: bool) -> None:
    item = OutboxItem(state=OutboxState.PENDING, expires_at_ms=expires_at_ms)
    assert expired(item, NOW_MS) is late


@pytest.mark.clause("B15.3")
def test_an_effect_that_takes_its_sender_down_each_time_is_listed_unknown_in_the_end() -> None:
    twice = OutboxItem(state=OutboxState.SENDING, tries=2)
    backoff = Backoff(max_tries=2)
    assert step(twice, Abandoned(), now_ms=0, backoff=backoff).state is OutboxState.UNKNOWN
    once = OutboxItem(state=OutboxState.SENDING, tries=1)
    assert step(once, Abandoned(), now_ms=0, backoff=backoff).state is OutboxState.PENDING


@pytest.mark.clause("B15.2")
@pytest.mark.parametrize("event", [TooLate(), Discarded()])
def test_what_may_be_visible_from_a_dead_senders_try_never_counts_as_unsent(
    event: TooLate | Discarded,
) -> None:
    taken_back = step(SENDING, Abandoned(), now_ms=0)
    assert step(taken_back, event, now_ms=0).state is OutboxState.UNKNOWN
    again = step(taken_back, Claimed(), now_ms=0)
    assert step(again, Refused(), now_ms=0).state is OutboxState.UNKNOWN
    later = step(again, NotDelivered(), now_ms=0)
    assert step(later, event, now_ms=0).state is OutboxState.UNKNOWN
    assert step(again, Delivered(), now_ms=0).state is OutboxState.SENT


@pytest.mark.clause("B15.2")
@pytest.mark.parametrize("state", [OutboxState.DEAD, OutboxState.EXPIRED])
def test_what_nobody_saw_begins_anew_when_a_person_asks(state: OutboxState) -> None:
    lost = OutboxItem(state=state, tries=8, expires_at_ms=1, reason="503")
    again = revive(lost, now_ms=NOW_MS, life_ms=5000)
    assert (again.state, again.tries, again.due_at_ms) == ("pending", 0, NOW_MS)
    assert (again.expires_at_ms, again.may_be_visible) == (NOW_MS + 5000, False)


@pytest.mark.clause("B15.2")
def test_what_may_be_visible_is_looked_for_before_it_is_sent_again() -> None:
    again = revive(OutboxItem(state=OutboxState.UNKNOWN, tries=8), now_ms=NOW_MS, life_ms=None)
    assert (again.tries, again.may_be_visible, again.expires_at_ms) == (1, True, None)
    claimed = step(again, Claimed(), now_ms=NOW_MS)
    assert claimed.tries == 2


@pytest.mark.parametrize(
    "state", [s for s in OutboxState if s not in {"dead", "expired", "unknown"}]
)
def test_what_was_sent_or_is_on_its_way_is_not_sent_again(state: OutboxState) -> None:
    with pytest.raises(IllegalMoveError):
        revive(OutboxItem(state=state), now_ms=NOW_MS, life_ms=None)
