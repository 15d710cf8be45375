"""The chat kit: buckets, the loop budget, rooms and addresses, the table of limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fixtures.connector import MemoryContext
from upright.api import Address
from upright.kit.bucket import Buckets
from upright.kit.limits import LIMITS
from upright.kit.loop import Heard, LoopBudget
from upright.kit.rooms import Known, RoomRules, Speech

AT = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


@pytest.mark.feature("chat.rates")
def test_a_bucket_lets_the_burst_through_and_then_one_each_second() -> None:
    clock = MemoryContext()
    buckets = Buckets(clock.now, per_s=1, burst=2)
    assert [buckets.take("c") for _ in range(4)] == [0, 0, 1, 2]
    clock.pass_time(10)
    assert buckets.take("c") == 0


def test_a_busy_room_delays_no_other() -> None:
    buckets = Buckets(MemoryContext().now, per_s=1, burst=1)
    assert [buckets.take("a"), buckets.take("a"), buckets.take("b")] == [0, 1, 0]


def test_a_token_that_was_not_used_is_given_back() -> None:
    buckets = Buckets(MemoryContext().now, per_s=1, burst=1)
    buckets.take("a")
    buckets.give_back("a")
    assert buckets.take("a") == 0


@pytest.mark.feature("chat.loops")
def test_twenty_events_of_a_bot_in_a_minute_then_a_minute_of_silence() -> None:
    budget = LoopBudget()
    heard = [budget.hear("b", "r", at(n)) for n in range(22)]
    assert heard == [Heard.YES] * 20 + [Heard.LAST, Heard.NO]
    assert budget.hear("b", "r", at(79)) is Heard.NO
    assert budget.hear("b", "r", at(80)) is Heard.YES
    assert budget.hear("b", "another", at(22)) is Heard.YES


def test_a_slow_bot_is_always_heard() -> None:
    budget = LoopBudget()
    assert {budget.hear("b", "r", at(4 * n)) for n in range(100)} == {Heard.YES}


def test_a_room_is_heard_by_any_of_its_names() -> None:
    rules = RoomRules(allowed=frozenset({"#dev"}), mention_only=frozenset({"C2"}))
    assert rules.hears("C1", "#dev")
    assert not rules.hears("C2", "#talk")
    assert rules.only_mentions("C2")
    assert not rules.only_mentions("C1", "#dev")
    assert RoomRules().hears("any")
    assert RoomRules(mention_only=frozenset({"*"})).only_mentions("any")


def test_a_direct_talk_goes_before_a_mention() -> None:
    assert Speech(direct=True, mentioned=True).address is Address.DIRECT
    assert Speech(answers_us=True).address is Address.MENTION
    assert Speech().address is Address.NONE


async def test_what_was_learned_is_not_asked_twice_and_forgotten_at_last() -> None:
    known, asked = Known[int](2), list[str]()

    async def learn(key: str) -> int:
        async def ask() -> int:
            asked.append(key)
            return len(asked)

        return await known.learn(key, ask)

    assert [await learn(key) for key in "abaca"] == [1, 2, 1, 3, 1]
    assert await learn("b") == 4
    assert asked == ["a", "b", "c", "b"]


def test_each_limit_names_its_source() -> None:
    assert all(limit.value > 0 and limit.unit and limit.source for limit in LIMITS.values())
