from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upright.core.budget import (
    DAY_MS,
    NOTHING,
    Caps,
    Finding,
    Key,
    Level,
    Measure,
    Scope,
    Standing,
    Used,
    judge,
    reached,
    said_of,
    stopping,
)

DAY: Final = Key(Scope.DAY)
GH: Final = Key(Scope.SOURCE, "gh")
ITEM: Final = Key(Scope.ITEM, "wk_1")
CAPS: Final = Caps(
    each={
        Scope.SOURCE: {Measure.TOKENS: 100, Measure.USD_MICROS: 1_000_000},
        Scope.ITEM: {Measure.STEPS: 10},
    },
    named={DAY: {Measure.TOKENS: 1_000}},
)


def standing(key: Key = GH, *, extra: int = 0, **used: int) -> Standing:
    return Standing(key=key, used=Used(**used), extra=extra)


def found(one: Standing, caps: Caps = CAPS, coming: Used = NOTHING) -> Finding:
    finding = judge(one, caps, coming=coming)
    assert finding is not None
    return finding


# ------------------------------------------------------------------ how far a scope is
@pytest.mark.clause("B16.2")
@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, Level.FINE),
        (79, Level.FINE),
        (80, Level.WARN),
        (99, Level.WARN),
        (100, Level.STOP),
        (101, Level.STOP),
    ],
)
def test_people_are_warned_at_80_percent_and_work_stops_at_100(tokens: int, level: Level) -> None:
    assert found(standing(tokens=tokens)).level is level


@pytest.mark.clause("B16.2")
def test_the_measure_that_is_closest_to_its_cap_counts() -> None:
    finding = found(standing(tokens=50, usd_micros=900_000))
    assert (finding.level, finding.measure) == (Level.WARN, Measure.USD_MICROS)
    assert finding.sentence == "the budget of the source gh: $0.90 of $1.00 used"


def test_without_a_cap_nothing_is_judged() -> None:
    assert judge(standing(Key(Scope.AGENT, "worker"), tokens=10**9), CAPS) is None
    assert stopping([standing(Key(Scope.AGENT, "worker"), tokens=10**9)], CAPS) is None


@pytest.mark.clause("B16.2")
def test_what_is_under_way_counts_as_if_it_had_come() -> None:
    under_way = Used(tokens=30)
    assert found(standing(tokens=70)).level is Level.FINE
    assert found(standing(tokens=70), coming=under_way).level is Level.STOP
    assert stopping([standing(tokens=70)], CAPS, coming=under_way) is not None


@pytest.mark.clause("B16.2")
def test_a_grant_is_the_whole_budget_once_more() -> None:
    assert found(standing(tokens=100)).level is Level.STOP
    assert found(standing(tokens=100, extra=1)).level is Level.FINE
    assert found(standing(tokens=200, extra=1)).level is Level.STOP


@pytest.mark.clause("B16.2")
def test_of_several_scopes_that_are_used_up_the_widest_stops() -> None:
    every = [standing(ITEM, steps=10), standing(GH, tokens=100), standing(DAY, tokens=1_000)]
    stopped = stopping(every, CAPS)
    assert stopped is not None
    assert stopped.key == DAY
    assert stopping([standing(GH, tokens=99), standing(DAY, tokens=999)], CAPS) is None


# ------------------------------------------------------------------ whose caps hold
@pytest.mark.clause("B16.2")
def test_what_is_named_goes_before_what_is_for_each() -> None:
    caps = Caps(each=CAPS.each, named={GH: {Measure.TOKENS: 7}})
    assert caps.of(GH) == {Measure.TOKENS: 7, Measure.USD_MICROS: 1_000_000}
    assert caps.of(Key(Scope.SOURCE, "mail"))[Measure.TOKENS] == 100


@pytest.mark.clause("B16.2")
def test_what_people_set_goes_before_the_configuration_and_0_takes_a_cap_away() -> None:
    set_by_people = CAPS.under(
        {Scope.ITEM: {Measure.STEPS: 20}}, {DAY: {Measure.TOKENS: 0}, GH: {Measure.TOKENS: 1}}
    )
    assert set_by_people.of(ITEM) == {Measure.STEPS: 20}
    assert set_by_people.of(DAY) == {}
    assert set_by_people.of(GH)[Measure.TOKENS] == 1
    assert set_by_people.of(Key(Scope.SOURCE, "mail"))[Measure.TOKENS] == 100
    assert set_by_people.warn_percent == CAPS.warn_percent


# ------------------------------------------------------------------ periods
@pytest.mark.clause("B16.2")
def test_a_day_renews_at_midnight_and_an_item_never() -> None:
    noon = 20_000 * DAY_MS + DAY_MS // 2
    assert (DAY.period(noon), DAY.renews_ms(noon)) == (20_000, 20_001 * DAY_MS)
    assert (GH.period(noon + DAY_MS), ITEM.period(noon)) == (20_001, 0)
    assert ITEM.renews_ms(noon) is None
    assert (DAY.ref, GH.ref) == ("budget:day:", "budget:source:gh")


@given(st.integers(min_value=0, max_value=10**13))
def test_the_next_period_begins_exactly_when_this_one_renews(now_ms: int) -> None:
    renews = DAY.renews_ms(now_ms)
    assert renews is not None
    assert now_ms < renews <= now_ms + DAY_MS
    assert DAY.period(renews - 1) == DAY.period(now_ms) == DAY.period(renews) - 1


# ------------------------------------------------------------------ sums and words
def test_counts_add_up_each_by_itself() -> None:
    both = Used(tokens=1, steps=2, unpriced=1).plus(Used(tokens=3, millis=4))
    assert both == Used(tokens=4, steps=2, unpriced=1, millis=4)
    assert both.of(Measure.MILLIS) == 4


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        (Measure.TOKENS, "1,500,000 tokens"),
        (Measure.USD_MICROS, "$1.50"),
        (Measure.MILLIS, "1,500 s"),
        (Measure.STEPS, "1,500,000 steps"),
    ],
)
def test_amounts_are_said_in_the_units_that_people_use(measure: Measure, said: str) -> None:
    assert said_of(measure, 1_500_000) == said


@pytest.mark.clause("B13.1")
def test_a_turns_caps_are_reached_one_by_one_and_0_is_none() -> None:
    caps = {Measure.TOKENS: 0, Measure.RETRIES: 2}
    assert reached(Used(tokens=10**9, retries=1), caps) == ""
    assert reached(Used(retries=2), caps) == "2 retries of 2 retries in one turn"
