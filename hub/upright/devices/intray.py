"""Intray: what was read from a link and is not handled yet, in its order.

Reading goes on while the store commits. Pieces of one stream that wait side by side are taken as
one, so that a fast stream costs a commit for what has come meanwhile, not for each frame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from upright.devices.bell import Bell
from upright.devices.transport import GoneError
from upright_wire import codec
from upright_wire.frames import Data, Flag, Message

MOST_WAITING: Final = 64
MOST_BYTES: Final = 1024 * 1024  # in one piece: the credit of a command


class Intray:
    """A bounded queue with one writer and one reader. What waits at the end is still taken."""

    __slots__ = (
        "_changed",
        "_gone",
        "_waiting",
    )

    def __init__(self) -> None:
        self._waiting: list[Message | Data] = []  # few, and none at most links at most times
        self._changed = Bell()
        self._gone: GoneError | None = None

    async def put(self, what: Message | Data) -> None:
        """Add one; wait while too many wait already."""
        while len(self._waiting) >= MOST_WAITING:
            await self._wait()
        self._waiting.append(what)
        self._changed.ring()

    def end(self, gone: GoneError) -> None:
        """Say that nothing follows."""
        self._gone = gone
        self._changed.ring()

    async def take(self) -> Message | Data:
        """Return the next; data frames that adjoin it are part of it.

        Raises:
            GoneError: the link has ended, and everything was taken.
        """
        while not self._waiting:
            if self._gone is not None:
                raise self._gone
            await self._wait()
        first = self._waiting.pop(0)
        taken = self._joined(first) if isinstance(first, Data) else first
        self._changed.ring()
        return taken

    async def _wait(self) -> None:
        self._changed.silence()
        await self._changed.wait()

    def _joined(self, first: Data) -> Data:
        pieces, size, end, flags = (
            [first.payload],
            len(first.payload),
            codec.after(first),
            first.flags,
        )
        while self._waiting and size < MOST_BYTES:
            following = self._waiting[0]
            if not isinstance(following, Data) or not _adjoins(first, flags, end, following):
                break
            self._waiting.pop(0)
            pieces.append(following.payload)
            size += len(following.payload)
            end, flags = codec.after(following), following.flags
        return replace(first, payload=b"".join(pieces), flags=flags) if len(pieces) > 1 else first


def _adjoins(first: Data, flags: Flag, end: int, following: Data) -> bool:
    """Say whether a frame goes on exactly where the ones before it end; gaps stay alone."""
    return (
        flags is Flag.NONE
        and Flag.GAP not in following.flags
        and (following.kind, following.channel) == (first.kind, first.channel)
        and following.offset == end
    )
