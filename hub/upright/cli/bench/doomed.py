"""Doomed: a hub that dies when it is told to: ``python -m upright.cli.bench.doomed``.

It is the hub itself, opened on a store that watches each unit of work go by. What is killed is a
whole process, by SIGKILL, either inside the transaction or between the commit and its answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from upright import logs
from upright.cli.bench.doom import Fate, Files
from upright.cli.bench.stops import RECOVERED, Side, names_of, stop_of
from upright.cli.place import Place
from upright.compose.serve import serve
from upright.engine.clock import SystemClock
from upright.engine.ports import Clock
from upright.store import trail
from upright.store.address import Address
from upright.store.opening import open_storage
from upright.store.storage import Storage, Time
from upright.store.unit import Connection

T = TypeVar("T")
STANDS_BY_S: Final = 0.02


class DoomedStore:
    """A store around another one; it is a :class:`upright.store.storage.Storage`."""

    def __init__(self, inner: Storage, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    @property
    def time(self) -> Time:
        """The inner store's time."""
        return self._inner.time

    async def write(self, unit: Callable[[Connection], T]) -> T:
        """Run a unit of work, and pass its stop on both sides of the commit."""
        stop: str | None = None
        will_lease = False

        def watched(c: Connection) -> T:
            nonlocal stop, will_lease
            before, leased = trail.last(c), trail.is_leased(c)
            result = unit(c)
            stop = stop_of(names_of(unit), trail.since(c, before), result)
            leased &= stop != RECOVERED  # until then the leases are a dead hub's
            will_lease = trail.is_leased(c)
            if stop is not None:
                self._fate.passes(stop, Side.BEFORE, inside_turn=leased)
            return result

        result = await self._inner.write(watched)
        if stop is not None:
            self._fate.passes(stop, Side.AFTER, inside_turn=will_lease)
        return result

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run a query; nobody dies of that."""
        return await self._inner.read(query)

    async def close(self) -> None:
        """Close the inner store."""
        await self._inner.close()


async def told_to_go(file: Path, clock: Clock) -> bool:
    """Wait for the word; False when whoever would say it has gone."""
    parent = os.getppid()
    while not _is_there(file):
        if os.getppid() != parent:
            return False
        await clock.sleep(STANDS_BY_S)
    return True


def _is_there(file: Path) -> bool:
    return file.exists()


@click.command()
@click.option("--port", type=int, required=True)
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--number", type=int, required=True)
def main(port: int, folder: Path, number: int) -> None:
    """Run the hub of UPRIGHT_HOME until it dies as the files in FOLDER say, or by SIGTERM.

    It stands by, all imports done, until the file that is its own says go: that makes it quick.
    """
    place = Place(flags={"hub.port": port})
    fate = Fate(Files(folder=folder))
    if not asyncio.run(told_to_go(Files(folder=folder).go(number), SystemClock())):
        return

    async def opened(where: Address, roll: Callable[[], float]) -> Storage:
        return DoomedStore(await open_storage(where, roll), fate)

    logs.set_up(level=place.settings.logs.level, style=place.settings.logs.format)
    serve(place.settings, place.env, ready=click.echo, open_store=opened)


if __name__ == "__main__":
    main()
