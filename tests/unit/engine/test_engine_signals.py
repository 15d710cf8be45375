"""Signals and hints: in-process wake-ups; losing one costs time, never truth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from upright.engine.hints import Hint
from upright.engine.signals import Signals

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def took_s(wait: Callable[[], Awaitable[object]]) -> float:
    """Return how long a wait takes."""
    began = now()
    await wait()
    return now() - began


# ------------------------------------------------------------------ hints
async def test_a_hint_that_was_given_before_counts_once() -> None:
    hint = Hint()
    hint.give()
    hint.give()
    assert await took_s(lambda: hint.wait(10)) == 0
    assert await took_s(lambda: hint.wait(10)) == 10


async def test_a_hint_ends_a_wait() -> None:
    hint = Hint()
    asyncio.get_running_loop().call_later(3, hint.give)
    assert await took_s(lambda: hint.wait(10)) == 3


@pytest.mark.parametrize("timeout_s", [0, -5])
async def test_a_time_that_has_passed_is_not_waited_for(timeout_s: float) -> None:
    assert await took_s(lambda: Hint().wait(timeout_s)) == 0


async def test_cancelling_a_wait_for_a_hint_passes_through() -> None:
    hint = Hint()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await hint.wait(10)


# ------------------------------------------------------------------ signals
async def test_a_signal_wakes_everybody_who_listens_for_its_key_and_nobody_else() -> None:
    signals = Signals()
    with (
        signals.listen(["a"]) as one,
        signals.listen(["a", "b"]) as two,
        signals.listen(["b"]) as three,
    ):
        signals.notify("a")
        assert await one.wait(5)
        assert await two.wait(5)
        assert not await three.wait(5)


async def test_what_came_since_the_last_wait_counts_once() -> None:
    signals = Signals()
    with signals.listen(["a"]) as listening:
        signals.notify("a")
        signals.notify("a")
        assert await took_s(lambda: listening.wait(5)) == 0
        assert await took_s(lambda: listening.wait(5)) == 5


async def test_what_came_before_the_listening_began_is_lost() -> None:
    signals = Signals()
    signals.notify("a")
    with signals.listen(["a"]) as listening:
        assert not await listening.wait(5)


async def test_whoever_has_gone_is_forgotten_and_the_others_are_not() -> None:
    signals = Signals()
    with signals.listen(["a"]) as stays:
        with signals.listen(["a"]):
            pass
        signals.notify("a")
        assert await stays.wait(5)
    assert signals._waiting == {}
