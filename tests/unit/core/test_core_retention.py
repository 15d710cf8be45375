"""Retention: ages become times, and what went says when."""

from __future__ import annotations

from upright.core.retention import DAY_MS, before_ms, pruned_on


def test_an_age_in_days_becomes_the_time_before_which_a_thing_is_too_old() -> None:
    assert before_ms(100 * DAY_MS, 30) == 70 * DAY_MS


def test_without_an_age_a_thing_is_kept_for_ever() -> None:
    assert before_ms(100 * DAY_MS, 0) is None


def test_what_was_pruned_says_on_which_day_and_what_is_there_says_nothing() -> None:
    assert pruned_on(86_400_000 - 1) == "pruned on 1970-01-01"
    assert pruned_on(None) == ""
