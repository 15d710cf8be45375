"""Command: one open command in the daemon's memory; its moves are those of the wire's table."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from upright_execd.ports import Snapshot
from upright_execd.spool.accepted import Accepted, Receipt
from upright_wire.command import Begin, End, Event, Outcome, Started, State, step
from upright_wire.spec import Stdin

FENCE: Final = ""
"""The digest of a command that was cancelled before it was heard of."""


class Command:
    """Where a command is. Only the event loop's thread touches it.

    ``waiting`` is there while it waits for the owner or for its input; ``is_withdrawn`` says that
    the hub gave it up before a shim had it.
    """

    def __init__(self, command_id: str, digest: str, *, state: State = State.RECEIVED) -> None:
        self.command_id, self.digest, self.state = command_id, digest, state
        self.pid: int | None = None
        self.outcome: Outcome | None = None
        self.accepted: Accepted | None = None
        self.input: Input | None = None
        self.waiting: asyncio.Timeout | None = None
        self.is_withdrawn = False

    @classmethod
    def from_accepted(cls, accepted: Accepted) -> Command:
        """Take up again what an earlier daemon accepted."""
        command = cls(accepted.command_id, accepted.digest, state=State.ACCEPTED)
        command.accepted = accepted
        return command

    @classmethod
    def from_receipt(cls, receipt: Receipt) -> Command:
        """Take up again what ended, and whose end the hub may not know."""
        command = cls(receipt.command_id, receipt.digest, state=State.FINAL)
        command.outcome = receipt.outcome
        return command

    @property
    def is_with_shim(self) -> bool:
        """Whether it was accepted and has no end yet."""
        return self.state in {State.ACCEPTED, State.STARTED}

    @property
    def stdin_offset(self) -> int:
        """Up to where its input is here; all of it once it was accepted."""
        if self.input is not None:
            return self.input.offset
        wanted = None if self.accepted is None else self.accepted.spec.stdin
        return 0 if wanted is None else wanted.bytes

    def withdraw(self) -> None:
        """Give it up: the wait that it is in, if any, ends now."""
        self.is_withdrawn = True
        if self.waiting is not None:
            self.waiting.reschedule(asyncio.get_running_loop().time())

    def apply(self, event: Event) -> None:
        """Make a move.

        Raises:
            IllegalMoveError: there is no such move from here.
        """
        self.state = step(self.state, event)
        match event:
            case Begin(pid=pid):
                self.pid = pid
            case End(outcome=outcome):
                self.outcome = outcome
            case _:
                pass

    def snapshot(self) -> Snapshot:
        """Return what the hub is told."""
        started = Started.YES if self.state is State.STARTED else Started.NO
        return Snapshot(
            command_id=self.command_id,
            state=self.state,
            started=self.outcome.started if self.outcome else started,
            pid=self.pid,
            outcome=self.outcome,
        )


class Input:
    """The input of a command while it comes in: how much is here, and is it the right one."""

    def __init__(self, wanted: Stdin) -> None:
        self._wanted, self._sha = wanted, hashlib.sha256()
        self._is_excess = False
        self.offset = 0
        self.is_complete = asyncio.Event()
        if wanted.bytes == 0:
            self.is_complete.set()
        self.order = asyncio.Lock()

    def fresh(self, offset: int, data: bytes) -> bytes:
        """Return the part of a piece that is new and wanted; nothing when it leaves a gap."""
        if offset > self.offset:
            return b""
        self._is_excess = self._is_excess or offset + len(data) > self._wanted.bytes
        return data[self.offset - offset :][: self._wanted.bytes - self.offset]

    def keep(self, data: bytes, *, is_end: bool) -> None:
        """Count a new piece that is on disk now."""
        self._sha.update(data)
        self.offset += len(data)
        if is_end or self.offset == self._wanted.bytes:
            self.is_complete.set()

    @property
    def is_right(self) -> bool:
        """Whether what came is what the spec says."""
        is_whole = self.offset == self._wanted.bytes and not self._is_excess
        return is_whole and self._sha.hexdigest() == self._wanted.sha256
