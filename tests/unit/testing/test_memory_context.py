"""The context in memory: it keeps what a hub would keep, and its time moves when a test says so."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from upright.api import (
    Actor,
    Channel,
    ConnectorAuthFailedError,
    ConnectorContext,
    Content,
    Context,
    SecretRef,
    Trigger,
)
from upright.testing.context import START, MemoryContext


def trigger(*keys: str) -> Trigger:
    return Trigger(
        kind="x",
        channel=Channel.CHAT,
        actor=Actor(id="ann"),
        content=Content(),
        context=Context(thread="t"),
        dedupe=keys,
    )


async def test_a_trigger_with_a_key_that_was_seen_is_not_accepted() -> None:
    memory = MemoryContext()
    await memory.emit([trigger("a", "b")], cursor="1")
    assert memory.take([trigger("b", "c"), trigger("d")]) == (trigger("d"),)
    assert memory.take([trigger("c")]) == ()
    assert (len(memory.emitted), len(memory.accepted)) == (4, 2)


async def test_a_cursor_covers_what_came_before_it() -> None:
    memory: MemoryContext = MemoryContext()
    context: ConnectorContext = memory
    assert await context.cursor() is None
    await context.emit((), cursor="0")
    await context.emit([trigger("a")])
    await context.emit([trigger("b")], cursor="2")
    assert (await context.cursor(), memory.marks) == ("2", [0, 2])
    assert await memory.until_cursor() == "2"


async def test_a_secret_that_is_not_there_is_named() -> None:
    memory = MemoryContext(secrets={"env:T": "t"})
    assert memory.secret(SecretRef("env:T")).reveal() == "t"
    with pytest.raises(ConnectorAuthFailedError, match="env:X"):
        memory.secret(SecretRef("env:X"))


async def test_who_waits_for_too_few_is_told_what_came() -> None:
    memory = MemoryContext()
    memory.take([trigger("a")])
    with pytest.raises(AssertionError, match="1 of 2 came"):
        await memory.until(2, within_s=0.01)


async def test_a_sleep_ends_when_time_has_passed_and_not_by_a_jump() -> None:
    memory, done = MemoryContext(hurries=False), list[str]()

    async def nap(name: str) -> None:
        await memory.sleep(60)
        done.append(name)

    async def wait() -> None:
        await memory.sleep_until(START + timedelta(seconds=90))
        done.append("the clock")

    async with asyncio.TaskGroup() as group:
        group.create_task(nap("one"))
        group.create_task(nap("two"))
        group.create_task(wait())
        await memory.until_asleep(count=3)
        memory.jump(-3_600)
        memory.pass_time(59)
        await memory.until_asleep(count=3)
        assert done == []
        await memory.sleep_through(1)
        await memory.until_asleep()
        assert sorted(done) == ["one", "two"]
        memory.jump(3_600 + 30)
    assert done[-1] == "the clock"
    assert memory.service_now() == START + timedelta(seconds=60)
    assert memory.now() == START + timedelta(seconds=90)


async def test_in_a_hurry_a_sleep_moves_the_clock_itself() -> None:
    memory = MemoryContext()
    await memory.sleep(5)
    await memory.sleep_until(START + timedelta(seconds=9))
    assert memory.now() == START + timedelta(seconds=9)
