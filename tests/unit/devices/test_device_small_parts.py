"""The small parts of a link: a bell with one waiter, a queue that keeps its order."""

from __future__ import annotations

import asyncio

import pytest

from upright.devices.bell import Bell
from upright.devices.outgoing import Outgoing
from upright_wire.frames import Ping

pytestmark = pytest.mark.looptime


async def test_a_bell_that_was_rung_lets_the_next_waiter_pass() -> None:
    bell = Bell()
    bell.ring()
    async with asyncio.timeout(1):
        await bell.wait()
        await bell.wait()
    bell.silence()
    assert not bell.is_rung
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await bell.wait()


async def test_a_bell_wakes_who_waits_once_whatever_rings_it() -> None:
    bell = Bell()
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        group.create_task(bell.wait())
        await asyncio.sleep(0)
        bell.ring()
        bell.ring()
    assert bell.is_rung


def test_what_goes_out_keeps_its_order_however_it_comes() -> None:
    queue, taken = Outgoing(), []
    for number in range(3):
        queue.put(Ping(number=number))
    taken.append(queue.take())
    queue.put(Ping(number=3))
    assert len(queue) == 3
    while (message := queue.take()) is not None:
        taken.append(message)
    assert taken == [Ping(number=number) for number in range(4)]
    assert len(queue) == 0
