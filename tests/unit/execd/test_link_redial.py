"""Redial: soon at first, then seldom, never in a storm, and not at all when revoked."""

from __future__ import annotations

import pytest

from upright_execd.redial import Intervals, LinkEnd, Redial
from upright_wire.frames import CloseCode


def redial(share: float = 1.0) -> Redial:
    return Redial(intervals=Intervals(), uniform=lambda low, high: low + share * (high - low))


@pytest.mark.clause("E2.5")
def test_the_waits_grow_to_a_minute_and_stay_there() -> None:
    tries = redial()
    waits = [tries.wait_s(LinkEnd(reason="refused")) for _ in range(30)]
    assert waits[:6] == [5, 10, 20, 40, 60, 60]
    assert waits[-1] == 60


@pytest.mark.clause("E2.5")
def test_the_jitter_is_full() -> None:
    tries = redial(share=0)
    assert [tries.wait_s(LinkEnd(reason="x")) for _ in range(9)] == [0] * 9


def test_a_link_that_held_starts_the_count_anew_and_one_that_did_not_does_not() -> None:
    tries = redial()
    for _ in range(5):
        tries.wait_s(LinkEnd(reason="x"))
    assert tries.wait_s(LinkEnd(reason="x", lived_s=39)) == 60
    assert tries.wait_s(LinkEnd(reason="x", lived_s=40)) == 5


@pytest.mark.case("OC/21688")
@pytest.mark.clause("E2.4")
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_device_that_is_not_approved_comes_twice_a_minute_at_most(share: float) -> None:
    end = LinkEnd(reason="x", code=CloseCode.NOT_APPROVED)
    wait_s = redial(share).wait_s(end)
    assert wait_s is not None
    assert 30 <= wait_s <= 60


@pytest.mark.clause("E1.5", "E2.4")
def test_a_revoked_device_does_not_come_back() -> None:
    assert redial().wait_s(LinkEnd(reason="x", code=CloseCode.REVOKED)) is None


@pytest.mark.clause("E2.4")
def test_a_request_for_patience_is_granted() -> None:
    end = LinkEnd(reason="x", code=CloseCode.SLOW_DOWN, retry_after_s=100)
    assert redial(share=0).wait_s(end) == 100
    assert redial(share=0).wait_s(LinkEnd(reason="x", code=CloseCode.SLOW_DOWN)) == 60


@pytest.mark.case("GHA/3862")
@pytest.mark.clause("E2.5")
def test_after_sleep_the_next_try_is_at_once() -> None:
    assert redial().wait_s(LinkEnd(reason="x", slept=True)) == 0
