from __future__ import annotations

import pytest

from upright.core.backlog import LEAST_S, MOST_S, Measured, added, measured, retry_after_s


def test_what_comes_in_counts_until_it_is_counted_anew() -> None:
    first = measured(Measured(), 10, 5.0)
    assert added(first, 3).waiting == 13
    assert measured(added(first, 3), 11, 6.0).waiting == 11


def test_the_pace_is_what_left_in_the_time_between_two_counts() -> None:
    first = measured(Measured(), 10, 5.0)
    assert first.read_per_s is None
    assert measured(added(first, 30), 20, 7.0).read_per_s == 10.0
    assert measured(first, 99, 7.0).read_per_s == 0.0
    assert measured(first, 1, 5.0).read_per_s is None


@pytest.mark.clause("B2.6")
@pytest.mark.parametrize(
    ("waiting", "pace", "expected"),
    [
        (119, 2.0, 10.0),
        (100, 50.0, LEAST_S),
        (9_999, 1.0, MOST_S),
        (119, 0.0, MOST_S),
        (119, None, MOST_S),
    ],
)
def test_who_is_told_to_wait_is_told_how_long_it_will_take(
    waiting: int, pace: float | None, expected: float
) -> None:
    assert retry_after_s(Measured(waiting=waiting, read_per_s=pace), 100) == expected
