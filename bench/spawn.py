"""Spawn: commands as children of this process: the floor, and OpenSSH's own client."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Child:
    """A child process; its output is counted and dropped."""

    process: Process

    async def first_byte(self) -> None:
        """Wait for one byte of stdout."""
        assert self.process.stdout is not None
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


async def _count(stream: asyncio.StreamReader | None) -> int:
    assert stream is not None
    size = 0
    while piece := await stream.read(CHUNK):
        size += len(piece)
    return size


@dataclass(frozen=True, slots=True)
class Spawn:
    """Starts commands by ``create_subprocess_exec``, with a prefix or without."""

    prefix: tuple[str, ...] = ()

    async def start(self, argv: Sequence[str]) -> Child:
        """Start one."""
        words = [_quoted(word) for word in argv] if self.prefix else argv
        return Child(
            await asyncio.create_subprocess_exec(
                *self.prefix, *words, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE
            )
        )


def _quoted(word: str) -> str:
    """Quote a word: ssh hands a line to the far shell."""
    return "'" + word.replace("'", "'\\''") + "'"
