"""The conversation: one live link as the device leads it, between the socket and ``Commands``.

One reader, one writer. Control frames leave before data; of data, each command has its turn, one
piece of at most 64 KiB, as far as its credit goes (E3.1, E3.3).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from upright_execd.announce import FILES
from upright_execd.clock import Clock
from upright_execd.lanes import Lane, Lanes
from upright_execd.ports import Commands
from upright_execd.redial import Intervals, LinkEnd
from upright_execd.socket import GoneError
from upright_wire.command import Stream
from upright_wire.errors import UnsupportedError, WireError
from upright_wire.frames import (
    Ack,
    CancelCommand,
    CloseCode,
    Data,
    Exec,
    FinalAck,
    Flag,
    Inventory,
    Limits,
    Message,
    Ping,
    Pong,
    Problem,
    Refused,
    Sync,
    Workspace,
    Workspaces,
)
from upright_wire.session import Phase, Session

log = logging.getLogger(__name__)

INVENTORY_PART: Final = 150  # entries of about 250 bytes each in a frame of 64 KiB
MAX_WORKSPACE_BYTES: Final = 48 * 1024
SLEPT_S: Final = 5.0


class Link(Protocol):
    """The open socket, as the conversation sees it."""

    def silent_s(self) -> float:
        """Return for how long nothing has been heard."""
        ...

    async def receive(self) -> str | bytes:
        """Return the next frame. Raises GoneError."""
        ...

    async def send(self, frame: str | bytes) -> None:
        """Send a frame. Raises GoneError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Time, as a conversation needs it; ``boot_time`` runs on while the machine sleeps."""

    clock: Clock
    boot_time: Callable[[], float]
    intervals: Intervals

    def drift(self) -> float:
        """Return a number that grows by what the machine sleeps."""
        return self.boot_time() - self.clock.monotonic()


class Conversation:
    """One link after its welcome. ``run`` ends with the link, and says why it ended."""

    def __init__(
        self, link: Link, session: Session, commands: Commands, *, times: Times, limits: Limits
    ) -> None:
        self._link = link
        self._session = session
        self._commands = commands
        self._times = times
        self._ping_s = min(times.intervals.ping_s, limits.ping_ms / 1000)
        self._dead_s = min(times.intervals.dead_s, limits.dead_ms / 1000)
        self._lanes = Lanes(commands, limits)
        self._control: deque[Message] = deque()
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._end = LinkEnd(reason="")
        self._must_announce = False
        self._retry_after_s: float | None = None

    @property
    def is_synced(self) -> bool:
        """Whether hub and device know what the other has."""
        return self._session.phase is Phase.SYNCED

    # -------------------------------------------------------------- told by the local half
    def command_changed(self, command_id: str) -> None:
        """Look at this command again."""
        self._lanes.changed(command_id)
        self._wake.set()

    def workspaces_changed(self) -> None:
        """Announce the workspaces again."""
        self._must_announce = True
        self._wake.set()

    # -------------------------------------------------------------- its life
    async def run(self) -> LinkEnd:
        """Lead the conversation until the link ends; the socket is the caller's to close."""
        began = self._times.clock.monotonic()
        self._commands.attach(self)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._guard(part), name=f"link.{name}")
                for name, part in (
                    ("read", self._read),
                    ("write", self._write),
                    ("watch", self._watch),
                )
            ]
            await self._ended.wait()
            for task in tasks:
                task.cancel()
        lived_s = self._times.clock.monotonic() - began
        return LinkEnd(
            reason=self._end.reason,
            code=self._end.code,
            slept=self._end.slept,
            lived_s=lived_s if self.is_synced else 0.0,
            retry_after_s=self._retry_after_s,
        )

    async def _guard(self, part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except GoneError as error:
            self._finish(LinkEnd(reason=error.reason, code=error.code))
        except WireError as error:
            log.warning("link.broken", extra={"code": error.code, "reason": str(error)[:300]})
            self._finish(LinkEnd(reason=str(error), code=CloseCode.PROTOCOL))

    def _finish(self, end: LinkEnd) -> None:
        if not self._ended.is_set():
            self._end = end
            self._ended.set()

    async def _watch(self) -> None:
        """Ping; notice a dead hub, and that the machine was asleep."""
        clock, drift, number = self._times.clock, self._times.drift(), 0
        ping_at = clock.monotonic() + self._ping_s
        while True:
            left_s = min(ping_at - clock.monotonic(), self._dead_s - self._link.silent_s())
            await clock.sleep(max(0.0, min(self._times.intervals.look_s, left_s)))
            if self._times.drift() - drift > SLEPT_S:
                self._finish(LinkEnd(reason="the machine was asleep", slept=True))
            if self._link.silent_s() >= self._dead_s:
                self._finish(LinkEnd(reason=f"the hub was silent for {self._dead_s:g} s"))
            if clock.monotonic() >= ping_at:
                number, ping_at = number + 1, clock.monotonic() + self._ping_s
                self._queue(Ping(number=number))

    # -------------------------------------------------------------- out
    def _queue(self, message: Message) -> None:
        self._control.append(message)
        self._wake.set()

    async def _write(self) -> None:
        await self._send_inventory()
        while True:
            self._wake.clear()
            frame = await self._next_frame()
            if frame is not None:
                await self._send(frame)
                await asyncio.sleep(0)  # a send that is not held up does not let the reader in
            elif not self._wake.is_set():
                await self._wake.wait()

    async def _send(self, frame: str | bytes) -> None:
        try:
            async with asyncio.timeout(self._dead_s):
                await self._link.send(frame)
        except TimeoutError as error:
            raise GoneError("the hub does not read") from error

    async def _next_frame(self) -> str | bytes | None:
        if self._control:
            return self._session.send(self._control.popleft())
        if not self.is_synced:
            return None
        if self._must_announce:
            self._must_announce = False
            workspaces = _fitting(await self._commands.workspaces())
            return self._session.send(Workspaces(workspaces=workspaces, files=FILES))
        item = await self._lanes.next()
        if item is None:
            return None
        if isinstance(item, Data):
            return self._session.send_data(item)
        return self._session.send(item)

    async def _send_inventory(self) -> None:
        held = await self._commands.inventory()
        for at in range(0, max(len(held), 1), INVENTORY_PART):
            end = at + INVENTORY_PART
            part = Inventory(commands=held[at:end], more=end < len(held))
            await self._send(self._session.send(part))

    # -------------------------------------------------------------- in
    async def _read(self) -> None:
        while True:
            frame = await self._link.receive()
            try:
                if isinstance(frame, bytes):
                    await self._on_stdin(self._session.receive_data(frame))
                elif (message := self._session.receive(frame)) is not None:
                    await self._on_message(message)
            except UnsupportedError as error:
                self._queue(Problem(code=error.code, about=str(error.data)[:200]))

    async def _on_message(self, message: Message) -> None:
        match message:
            case Ping():
                self._queue(Pong(number=message.number))
            case Ack():
                self._lanes.acked(message)
                self._wake.set()
                await self._commands.output_ack(message.command_id, message.stream, message.offset)
            case Problem():
                self._on_problem(message)
            case Sync():
                await self._on_sync(message)
            case Exec():
                await self._on_exec(message)
            case CancelCommand():
                await self._commands.cancel(message.command_id)
            case FinalAck():
                await self._forget(message.command_id)
            case _:  # Pong, and what only a device may send: the session refused it
                pass

    async def _on_sync(self, part: Sync) -> None:
        for wanted in part.commands:
            offsets = {Stream.STDOUT: wanted.stdout, Stream.STDERR: wanted.stderr}
            self._lanes.open(Lane(command_id=wanted.command_id, channel=wanted.channel), offsets)
        for command_id in part.cancel:
            await self._commands.cancel(command_id)
        for command_id in part.forget:
            await self._forget(command_id)
        if not part.more:
            self.workspaces_changed()

    async def _on_exec(self, order: Exec) -> None:
        refusal = await self._commands.exec(order)
        if refusal is not None:
            self._queue(Refused(command_id=order.command_id, refusal=refusal))
        elif not self._lanes.reopen(order.command_id):
            lane = Lane(command_id=order.command_id, channel=order.channel)
            self._lanes.open(lane, {Stream.STDOUT: 0, Stream.STDERR: 0})
        self._wake.set()

    async def _on_stdin(self, frame: Data) -> None:
        lane = self._lanes.find(frame.channel)
        if lane is None:
            self._queue(Problem(code="wire.unknown_channel", about=str(frame.channel)))
            return
        is_end = Flag.END in frame.flags
        safe = await self._commands.stdin(lane.command_id, frame.offset, frame.payload, end=is_end)
        self._queue(Ack(command_id=lane.command_id, stream=Stream.STDIN, offset=safe))

    async def _forget(self, command_id: str) -> None:
        self._lanes.close(command_id)
        await self._commands.final_ack(command_id)

    def _on_problem(self, problem: Problem) -> None:
        if problem.retry_after_ms is not None:
            self._retry_after_s = problem.retry_after_ms / 1000
        log.warning("link.problem", extra={"code": problem.code[:64], "about": problem.about[:200]})


def _fitting(workspaces: tuple[Workspace, ...]) -> tuple[Workspace, ...]:
    """Return as many as one frame holds, and say when that is not all."""
    fitting: list[Workspace] = []
    room = MAX_WORKSPACE_BYTES
    for workspace in workspaces:
        texts = (workspace.path, *workspace.remotes, *workspace.labels, workspace.owner)
        room -= 100 + sum(6 * len(text) for text in texts)  # JSON writes one letter in six at most
        if room < 0:
            log.warning("link.workspaces_cut", extra={"announced": len(fitting)})
            break
        fitting.append(workspace)
    return tuple(fitting)
