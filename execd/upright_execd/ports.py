"""Ports: what the link asks of the local half, and the local half of the link; wired by the cli.

The link pulls: it is told *that* a command changed, looks, and reads output from the offset it has
reached. A notice that is lost is made good by the next one, and by the inventory of the next link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from upright_wire.command import Outcome, Refusal, Started, State, Stream
from upright_wire.frames import Exec, Held, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A command now; ``outcome`` is there exactly when the state is FINAL."""

    command_id: str
    state: State
    started: Started
    pid: int | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a stream holds at an offset: bytes, or a count of bytes that were not kept, or nothing.

    Never both bytes and a count. ``end``: nothing will follow this piece.
    """

    data: bytes = b""
    omitted: int = 0
    end: bool = False


class Listener(Protocol):
    """What the local half tells; calls return at once, and are made in the event loop's thread."""

    def command_changed(self, command_id: str) -> None:
        """Say that there is a new state, new output or an end."""
        ...

    def workspaces_changed(self) -> None:
        """Say that ``Commands.workspaces`` has a new answer."""
        ...


class Commands(Protocol):
    """The local half: rules, consent, shims and spools. Every call may come twice."""

    def attach(self, listener: Listener) -> None:
        """Tell this listener from now on, and nobody before it."""
        ...

    async def exec(self, order: Exec) -> Refusal | None:
        """Take up a command, or say why not; returns once it is known whether it is taken.

        A known id with the same digest starts nothing and is None, too (E4.3). With input, the
        start waits until the last stdin byte is here and the SHA-256 agrees. Every other failure
        becomes the command's outcome. ``order.ttl_ms`` counts from this call.
        """
        ...

    async def stdin(self, command_id: str, offset: int, data: bytes, *, end: bool) -> int:
        """Spool input; what is there already is skipped. Return the offset up to which all is safe.

        Unknown commands, and those that want no input any more, swallow it: offset + length.
        """
        ...

    async def cancel(self, command_id: str) -> None:
        """End it (signal, grace, kill); for an unknown id, leave a fence (E6.1)."""
        ...

    async def inventory(self) -> tuple[Held, ...]:
        """Return every command whose final is not acknowledged, fences too."""
        ...

    async def look(self, command_id: str) -> Snapshot | None:
        """Return the present state; None when nothing is held under this id."""
        ...

    async def read(self, command_id: str, stream: Stream, offset: int, max_bytes: int) -> Piece:
        """Return what the stream holds from *offset* on; empty when there is no more yet."""
        ...

    async def output_ack(self, command_id: str, stream: Stream, offset: int) -> None:
        """Learn that the hub has stored everything before *offset*; that part may go."""
        ...

    async def final_ack(self, command_id: str) -> None:
        """Learn that the hub has stored the outcome: the spool goes, the receipt stays."""
        ...

    async def workspaces(self) -> tuple[Workspace, ...]:
        """Return the workspaces to announce."""
        ...
