from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.backoff import Backoff

B: Final = Backoff(base_s=1.0, cap_s=60.0, max_tries=3)
ROLLS: Final = st.floats(min_value=0.0, max_value=1.0, exclude_max=True)


@pytest.mark.parametrize(
    ("tries", "ceiling_s"), [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (5000, 60)]
)
def test_the_ceiling_doubles_from_the_base_up_to_the_cap(tries: int, ceiling_s: float) -> None:
    assert B.delay_s(tries, roll=0.5) == ceiling_s / 2


def test_by_default_eight_tries_begin_at_a_second_and_end_at_five_minutes() -> None:
    assert Backoff() == Backoff(base_s=1.0, cap_s=300.0, max_tries=8)


@given(tries=st.integers(0, 10**6), roll=ROLLS)
def test_a_delay_is_never_negative_and_stays_below_the_cap(tries: int, roll: float) -> None:
    assert 0.0 <= B.delay_s(tries, roll=roll) < 60.0


@given(tries=st.integers(0, 100), roll=ROLLS, asked_s=st.floats(0, 1000))
def test_a_delay_is_never_shorter_than_the_other_side_asked_for(
    tries: int, roll: float, asked_s: float
) -> None:
    delay_s = B.delay_s(tries, roll=roll, at_least_s=asked_s)
    assert delay_s == max(asked_s, B.delay_s(tries, roll=roll))


@pytest.mark.parametrize(("tries", "over"), [(0, False), (2, False), (3, True), (4, True)])
def test_no_further_try_is_due_after_the_last_one(*, tries: int, over: bool) -> None:
    assert B.exhausted(tries) is over


def test_what_the_other_side_asks_for_counts_up_to_a_day() -> None:
    assert Backoff().delay_s(1, roll=0.0, at_least_s=10 * 86_400.0) == 86_400.0
