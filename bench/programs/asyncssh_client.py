"""asyncssh, the client: one connection, one round of the commands; prints the figures as JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncssh

from bench.measures import Load, measure

CHUNK = 256 * 1024
Foreign = Any  # asyncssh is not in our environment


@dataclass(frozen=True, slots=True)
class Remote:
    """A command at the far end; its output is counted and dropped."""

    process: Foreign

    async def first_byte(self) -> None:
        """Wait for one byte of stdout."""
        await self.process.stdout.readexactly(1)

    async def cancel(self) -> None:
        """Send TERM."""
        self.process.terminate()

    async def end(self) -> tuple[int, int]:
        """Read both streams to their ends."""
        async with asyncio.TaskGroup() as group:
            out = group.create_task(_count(self.process.stdout), name="stdout")
            err = group.create_task(_count(self.process.stderr), name="stderr")
        await self.process.wait()
        return out.result(), err.result()


async def _count(stream: Foreign) -> int:
    size = 0
    while piece := await stream.read(CHUNK):
        size += len(piece)
    return size


@dataclass(frozen=True, slots=True)
class Ssh:
    """Starts commands over one connection."""

    connection: Foreign

    async def start(self, argv: Sequence[str]) -> Remote:
        """Start one."""
        line = shlex.join(argv)
        return Remote(await self.connection.create_process(line, encoding=None))


async def run(port: int, user: str, key: str, load: Load) -> dict[str, float]:
    """Connect, and do one round."""
    async with asyncssh.connect(
        "127.0.0.1", port, username=user, client_keys=[key], known_hosts=None, config=None
    ) as connection:
        return await measure(Ssh(connection), load)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("user")
    parser.add_argument("key")
    parser.add_argument("load", type=json.loads)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.port, given.user, given.key, Load(**given.load)))))


if __name__ == "__main__":
    main()
