"""The base of the contract: its one hook, what may be set, and how a test is skipped by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import ClassVar, Final, NoReturn, TypeVar

import pytest

from upright.api import Trigger
from upright.testing.context import PATIENCE_S, MemoryContext
from upright.testing.ear import Ear, listening
from upright.testing.outside import CannotError, Outside, Said

T = TypeVar("T")
LOOK_S: Final = 0.05


class Contract(ABC):
    """What all parts of the contract stand on.

    ``patience_s`` bounds each wait for a real service. ``nudge_s``: how much virtual time passes
    while a trigger is waited for, for connectors that look at a service now and then.
    """

    pytestmark: ClassVar = [pytest.mark.asyncio]
    patience_s: ClassVar[float] = PATIENCE_S
    nudge_s: ClassVar[float] = 0.0

    @abstractmethod
    def outside(self, context: MemoryContext) -> AbstractAsyncContextManager[Outside]:
        """Open a service of one's own for one test; it may put secrets into the context."""

    def context(self) -> MemoryContext:
        """Return the context that the connector is started with; its time stands still."""
        return MemoryContext(source="contract", hurries=False)

    # -------------------------------------------------------------- what the tests are made of
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[tuple[Outside, MemoryContext]]:
        """Open the service and a context."""
        context = self.context()
        async with self.outside(context) as outside:
            yield outside, context

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[tuple[Outside, Ear]]:
        """Open the service, with a connector that listens."""
        async with self.stage() as (outside, context), listening(outside, context) as ear:
            yield outside, ear

    async def able(self, doing: Awaitable[T]) -> T:
        """Do something outside; skip the test when it can't happen there."""
        try:
            return await doing
        except CannotError as error:
            skip(str(error))

    async def new(
        self, ear: Ear, *sayings: Awaitable[Said], count: int | None = None
    ) -> tuple[Trigger, ...]:
        """Say, and return the triggers that come of it; AssertionError when fewer came."""
        before = len(ear.context.accepted)
        for saying in sayings:
            await ear.hear(await self.able(saying))
        await self.until(ear.context, before + (len(sayings) if count is None else count))
        return tuple(ear.context.accepted[before:])

    async def until(self, context: MemoryContext, count: int) -> None:
        """Wait until so many triggers were accepted; see ``patience_s`` and ``nudge_s``."""
        looks = int(self.patience_s / LOOK_S) if self.nudge_s else 0
        for _ in range(looks):
            if len(context.accepted) >= count:
                return
            context.pass_time(self.nudge_s)
            with suppress(AssertionError):
                await context.until(count, within_s=LOOK_S)
        await context.until(count, within_s=0.0 if looks else self.patience_s)


def skip(why: str) -> NoReturn:
    """Skip a test by name of what is missing."""
    pytest.skip(f"contract: {why}")


def words(trigger: Trigger) -> str:
    """Return a trigger's title and text."""
    return f"{trigger.content.title}\n{trigger.content.text}"
