"""The sandbox's secondary limits are GitHub's own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from upright.testing.context import START
from upright_github.sandbox.limits import Limits

pytestmark = pytest.mark.feature("github.limits")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_900_reads_or_180_writes_a_minute() -> None:
    for method, most in (("GET", 900), ("POST", 180)):
        limits = Limits()
        allowed = [limits.spend(method, START) for _ in range(most + 1)]
        assert allowed == [True] * most + [False]
        assert not limits.spend(method, START + MINUTE - timedelta(seconds=1))
        assert limits.spend(method, START + MINUTE)


def test_80_creations_a_minute_and_500_an_hour() -> None:
    limits, made = Limits(), 0
    for minute in range(10):
        made += sum(limits.create(START + minute * MINUTE) for _ in range(100))
        assert made == min(80 * (minute + 1), 500)
    assert limits.create(START + HOUR)


def test_a_hundred_calls_at_once() -> None:
    limits = Limits(under_way=100)
    assert limits.spend("GET", START)
    limits.under_way = 101
    assert not limits.spend("GET", START)
