from __future__ import annotations

import asyncio
import threading

import pytest

from upright_execd.clock import SystemClock
from upright_execd.watchdog import Watchdog


@pytest.mark.case("OC/69800")
@pytest.mark.clause("E2.5")
@pytest.mark.may_block  # that is what is tried
async def test_a_loop_that_stands_still_is_ended() -> None:
    ended = threading.Event()
    dog = Watchdog(frozen_s=0.1, beat_s=0.02, end=ended.set)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(dog.run(SystemClock()))
        await asyncio.sleep(0)
        assert ended.wait(5)
        task.cancel()


async def test_a_loop_that_beats_is_left_alone() -> None:
    ended = threading.Event()
    dog = Watchdog(frozen_s=10, beat_s=0.02, end=ended.set)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(dog.run(SystemClock()))
        await asyncio.sleep(0.1)
        task.cancel()
    assert not ended.is_set()
    assert "watchdog" not in {thread.name for thread in threading.enumerate()}
