"""What a thread opens is closed by whoever asked for it, or by nobody's leave."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Final

import pytest

from fixtures.eventually import eventually
from upright_execd.opening import opened

THING: Final = "thing"


async def test_what_is_opened_is_its_askers() -> None:
    closed = list[str]()
    assert await opened(lambda: THING, closed.append) == THING
    assert not closed


async def test_what_was_opened_for_nobody_is_closed() -> None:
    began, goes_on, closed = threading.Event(), threading.Event(), list[str]()

    def make() -> str:
        began.set()
        goes_on.wait(10)
        return THING

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(opened(make, closed.append))
        await asyncio.to_thread(began.wait, 10)
        asking.cancel()
    assert not closed
    goes_on.set()
    await eventually(lambda: closed == [THING])


@pytest.mark.parametrize("turns", range(6))
async def test_what_is_there_as_its_asker_is_cancelled_is_its_or_closed(turns: int) -> None:
    closed = list[str]()
    there = asyncio.Event()
    say = partial(asyncio.get_running_loop().call_soon_threadsafe, there.set)

    def make() -> str:
        say()
        return THING

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(opened(make, closed.append))
        await there.wait()
        for _ in range(turns):  # wherever the answer is between the thread and its asker
            await asyncio.sleep(0)
        asking.cancel()
    await eventually(lambda: bool(closed) is asking.cancelled())


async def test_a_failure_to_open_is_told_or_dropped() -> None:
    closed = list[str]()

    def fail() -> str:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await opened(fail, closed.append)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(opened(fail, closed.append))
        await asyncio.sleep(0)
        asking.cancel()
    assert not closed
