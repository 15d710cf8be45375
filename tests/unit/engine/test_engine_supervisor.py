"""The supervisor: a service that fails is started again, later each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from fixtures.wire_world import LoopClock
from upright.engine.supervisor import Supervisor

pytestmark = pytest.mark.looptime


class BrokenError(Exception):
    """The service is broken."""


class Service:
    """Fails after each of these times, then returns; ``began`` is when it was started."""

    def __init__(self, *lives_s: float) -> None:
        self._lives_s: Iterator[float] = iter(lives_s)
        self.began: list[float] = []

    async def __call__(self) -> None:
        self.began.append(asyncio.get_running_loop().time())
        life_s = next(self._lives_s, None)
        if life_s is not None:
            await asyncio.sleep(life_s)
            raise BrokenError("no luck")


def supervisor(roll: Callable[[], float] = lambda: 1.0) -> Supervisor:
    return Supervisor(LoopClock(), roll)


def pauses(service: Service) -> list[float]:
    """Return the pauses between the starts of a service that fails at once."""
    return [later - earlier for earlier, later in pairwise(service.began)]


async def test_a_service_that_fails_is_started_again_after_a_growing_bounded_pause() -> None:
    service = Service(*[0.0] * 9)
    await supervisor().keep("mail", service)
    assert pauses(service) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


async def test_the_pause_has_jitter() -> None:
    service = Service(0, 0)
    rolls = iter([0.5, 0.25])
    await supervisor(lambda: next(rolls)).keep("mail", service)
    assert pauses(service) == [0.25, 0.25]


async def test_a_service_that_ran_long_begins_with_a_short_pause_again() -> None:
    service = Service(0, 0, 0, 31)
    await supervisor().keep("mail", service)
    assert service.began[4] - service.began[3] == 31 + 0.5


async def test_a_service_that_returns_is_not_started_again() -> None:
    service, keeper = Service(), supervisor()
    await keeper.keep("mail", service)
    (health,) = keeper.health()
    assert (health.running, health.restarts, len(service.began)) == (False, 0, 1)


async def test_its_health_says_how_often_and_why_it_was_started_anew() -> None:
    keeper = supervisor()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(keeper.keep("mail", Service(0, 100))),
            group.create_task(keeper.keep("chat", Service(100))),
        ]
        await asyncio.sleep(0.25)
        down = keeper.health()
        await asyncio.sleep(1)
        up = keeper.health()
        for task in tasks:
            task.cancel()
    assert [(one.name, one.running) for one in down] == [("chat", True), ("mail", False)]
    assert (down[1].reason, down[1].restarts) == ("no luck", 1)
    assert [(one.name, one.running, one.restarts) for one in up] == [
        ("chat", True, 0),
        ("mail", True, 1),
    ]


async def test_cancelling_passes_through() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await supervisor().keep("mail", Service(100))
