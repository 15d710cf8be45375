"""Ear: what a hub does with one connector, as far as the contract needs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from upright.api import Connector, ConnectorNotReadyError, Trigger
from upright.kit.late import late
from upright.testing.context import MemoryContext
from upright.testing.outside import Outside, Said

STOP_S: Final = 5.0
MAX_STARTS: Final = 5
LISTED: Final = timedelta(seconds=1)


@dataclass(slots=True)
class Ear:
    """A connector that was started and listens; ``connector`` changes when it starts anew."""

    context: MemoryContext
    connector: Connector

    async def hear(self, *said: Said) -> tuple[Trigger, ...]:
        """Bring the webhooks of what was said; return the new triggers.

        Of a service that is listened to nothing is returned: see :meth:`MemoryContext.until`.
        """
        new: list[Trigger] = []
        for one in said:
            for request in one.requests:
                new += self.context.take(await self.connector.receive(request))
        return tuple(new)


@asynccontextmanager
async def listening(
    outside: Outside, context: MemoryContext, *, since: str | None = None
) -> AsyncIterator[Ear]:
    """Start a connector, read what was missed *since*, listen; stop it at the end, within 5 s.

    As the hub does, it is started anew when it says that the service is gone, at most five times.
    """
    ear = Ear(context, await _started(outside, context))
    with _unwrapped():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_listen(ear, outside), name="listen")
            try:
                await _list(ear, since)
                await outside.settled(ear.connector, context)
                yield ear
            finally:
                task.cancel()
                await asyncio.wait([task])
                await stop(ear.connector)


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise the one error of a group by itself: a failed assertion reads best so."""
    try:
        yield
    except BaseExceptionGroup as errors:
        raise _alone(errors) from None


def _alone(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the one error of a group, however deep; the group when there are more."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def stop(connector: Connector) -> None:
    """Stop a connector; TimeoutError when that takes more than 5 s and a little."""
    async with asyncio.timeout(STOP_S + 1.0):
        await connector.stop(STOP_S)


async def _started(outside: Outside, context: MemoryContext) -> Connector:
    connector = outside.connector()
    try:
        await connector.start(context)
    except BaseException:
        await stop(connector)
        raise
    return connector


async def _listen(ear: Ear, outside: Outside) -> None:
    for starts in range(1, MAX_STARTS + 1):
        try:
            await ear.connector.listen()
        except ConnectorNotReadyError:
            if starts == MAX_STARTS:
                raise
            await stop(ear.connector)
            ear.connector = await _started(outside, ear.context)
        else:
            return


async def _list(ear: Ear, since: str | None) -> None:
    if not ear.connector.capabilities().lists:
        return
    until = ear.context.now() + LISTED
    ear.context.take([late(one) async for one in ear.connector.backfill(since, until)])
