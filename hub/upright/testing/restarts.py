"""Restarts: nothing is lost and nothing is repeated, whenever a connector was stopped."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import pytest

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorNotReadyError,
    Trigger,
)
from upright.kit.late import FACT
from upright.testing.base import Contract, skip, words
from upright.testing.context import MemoryContext
from upright.testing.ear import Ear, listening, stop
from upright.testing.outside import Outside

MISSED: Final = 5
TASKS_END_S: Final = 2.0
PAST: Final = 3


class RestartContract(Contract):
    """A connector is made anew with each start; what it must know is in its cursor."""

    @pytest.mark.parametrize("state", ["made", "refused", "started", "listening", "stopped"])
    async def test_stopped_in_any_state_its_successor_hears_once(self, state: str) -> None:
        """Stopping works in every state, twice too, and leaves no task."""
        async with self.stage() as (outside, context):
            tasks = asyncio.all_tasks()
            await _stopped_when(state, outside, context)
            assert not await _left(tasks)
            before = len(context.accepted)
            async with listening(outside, context, since=context.now().isoformat()) as ear:
                (told,) = await self.new(ear, outside.say("after the restart"))
                assert "after the restart" in words(told)
                assert len(context.accepted) == before + 1

    async def test_it_stops_in_time_while_the_service_is_silent(self) -> None:
        """Within 5 s, whatever is under way."""
        async with self.heard() as (outside, ear):
            await self.able(outside.hang())
            async with asyncio.TaskGroup() as group:
                checking = group.create_task(_check(ear), name="check")
                for _ in range(10):
                    await asyncio.sleep(0)
                await stop(ear.connector)
                checking.cancel()

    async def test_before_its_start_it_is_not_ready(self) -> None:
        """It says so; it doesn't break."""
        async with self.stage() as (outside, _):
            connector = outside.connector()
            with pytest.raises(ConnectorNotReadyError):
                await connector.validate()

    async def test_at_the_very_first_nothing_of_the_past_is_told(self) -> None:
        """A history of the service is no news (B1.4)."""
        async with self.stage() as (outside, context):
            for number in range(PAST):
                await outside.say(f"long ago {number}")
            async with listening(outside, context) as ear:
                (told,) = await self.new(ear, outside.say("now"))
                assert "now" in words(told)
                assert len(context.accepted) == 1

    async def test_what_was_said_while_it_was_stopped_comes_once_in_order_and_late(self) -> None:
        """Each is marked as late; what is said afterwards is not."""
        async with self.stage() as (outside, context):
            async with listening(outside, context) as ear:
                await self.new(ear, outside.say("before"))
                catches_up = ear.connector.capabilities()
            if not (catches_up.lists or catches_up.listens):
                skip("it only receives: nothing tells what it missed")
            since, before = context.now().isoformat(), len(context.accepted)
            context.pass_time(1)
            for number in range(MISSED):
                await outside.say(f"missed {number}")
            async with listening(outside, context, since=since) as ear:
                await self.until(context, before + MISSED)
                context.pass_time(1)
                missed = context.accepted[before:]
                (after,) = await self.new(ear, outside.say("afterwards"))
            told = [f"missed {n}" in words(one) for n, one in enumerate(missed)]
            assert told == [True] * MISSED
            assert all(_late(one) for one in missed)
            assert not _late(after)

    async def test_the_cursor_only_moves_on(self) -> None:
        """An earlier cursor tells at least what a later one tells; the last one tells nothing."""
        async with self.stage() as (outside, context):
            async with listening(outside, context) as ear:
                for number in range(PAST):
                    await self.new(ear, outside.say(f"word {number}"))
            if not context.cursors:
                skip("it keeps no cursor")
            known, sizes = tuple(context.accepted), list[int]()
            for number in sorted({0, len(context.cursors) // 2, len(context.cursors) - 1}):
                again = await self._told_from(number, outside, context)
                keys = {key for one in again for key in one.dedupe}
                lost = [
                    one for one in known[context.marks[number] :] if keys.isdisjoint(one.dedupe)
                ]
                assert not lost
                assert keys <= {key for one in known for key in one.dedupe}
                sizes.append(len(again))
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] == 0

    async def _told_from(
        self, number: int, outside: Outside, context: MemoryContext
    ) -> tuple[Trigger, ...]:
        """Return what a successor tells from one of the cursors, up to what is said now."""
        fresh = MemoryContext(
            source=context.source,
            secrets=context.secrets,
            at=context.now(),
            hurries=context.hurries,
            cursors=[context.cursors[number]],
            marks=[0],
        )
        end = f"the end {number}"
        async with listening(outside, fresh) as ear:
            await ear.hear(await outside.say(end))
            while not any(end in words(one) for one in fresh.accepted):
                await self.until(fresh, len(fresh.accepted) + 1)
        return tuple(one for one in fresh.accepted if "the end" not in words(one))


def _late(trigger: Trigger) -> bool:
    return FACT in trigger.context.facts


async def _left(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Return the tasks that are left of a connector; those of a server end with its sockets."""
    new = asyncio.all_tasks() - before
    if new:
        _, new = await asyncio.wait(new, timeout=TASKS_END_S)
    return new


async def _check(ear: Ear) -> None:
    """Have the connector wait for the silent service; being stopped may break it."""
    try:
        await ear.connector.validate()
    except ConnectorNotReadyError:
        return


async def _stopped_when(state: str, outside: Outside, context: ConnectorContext) -> None:
    if state == "listening":
        assert isinstance(context, MemoryContext)
        async with listening(outside, context):
            return
    connector = outside.connector()
    if state == "refused":
        poor = MemoryContext(source=context.source)
        with suppress(ConnectorAuthFailedError):  # as it must, unless it needs no secret
            await connector.start(poor)
    elif state != "made":
        await connector.start(context)
    await stop(connector)
    if state == "stopped":
        await stop(connector)
