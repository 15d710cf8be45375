"""The hub's end of one link: what is sent, what comes in, and when it is dead.

Everything that is sent goes through one writer: control messages first, then input for commands,
round robin. What comes in is handed to ``Inbound`` in order, and acknowledged when that returns;
reading goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from upright.devices.bell import Bell
from upright.devices.intray import Intray
from upright.devices.lanes import Feeds, Tracks
from upright.devices.outgoing import Outgoing
from upright.devices.ports import Inbound, Order, SyncPlan
from upright.devices.transport import GoneError, Transport
from upright.engine.ports import Clock
from upright_wire import codec
from upright_wire.errors import IllegalMoveError, SequenceError, UnsupportedError, WireError
from upright_wire.frames import (
    Ack,
    CancelCommand,
    CloseCode,
    Data,
    Exec,
    FinalAck,
    FinalReport,
    Flag,
    Held,
    Inventory,
    Message,
    Ping,
    Pong,
    Problem,
    Refused,
    StateReport,
    Sync,
    Wanted,
    Workspaces,
)
from upright_wire.session import Session

log = logging.getLogger(__name__)

MAX_HELD: Final = 10_000
MAX_QUEUED: Final = 10_000
SYNC_PART: Final = 200  # entries of about 150 bytes each in a frame of 64 KiB


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTimes:
    """The bounds of a link, in seconds; tests scale them down."""

    ping_s: float = 15.0
    dead_s: float = 40.0
    sync_s: float = 60.0
    close_s: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """Why a link ended; ``code`` None: it broke, or the device closed it."""

    code: CloseCode | None
    reason: str


_LIVES: Final = LinkEnd(code=None, reason="")


class DeviceLink:
    """One live link, after its welcome. ``run`` serves it; the ``send_`` methods only queue.

    What is queued and not sent when the link ends is settled by the next link's inventory.
    """

    def __init__(
        self,
        device_id: str,
        session: Session,
        transport: Transport,
        clock: Clock,
        *,
        times: LinkTimes,
    ) -> None:
        self.device_id = device_id
        self.strays = 0  # reports of commands that are not on this link
        self._session = session
        self._transport = transport
        self._clock = clock
        self._times = times
        self._control = Outgoing()
        self._wake = Bell()
        self._ended = Bell()
        self._end = _LIVES
        self._tracks = Tracks()
        self._feeds = Feeds()
        self._held: list[Held] = []
        self._heard_at = clock.monotonic()
        self._is_synced = False
        self._is_full = False
        self._intray = Intray()

    @property
    def is_synced(self) -> bool:
        """Whether commands may be sent."""
        return self._is_synced and not self._ended.is_rung

    # -------------------------------------------------------------- for the dispatcher
    def send_exec(self, order: Order) -> None:
        """Send a command; a second time on one link sends it again.

        Raises:
            IllegalMoveError: the link is not synced (or not any more).
        """
        self._must_be_synced()
        channel = self._tracks.open(order.command_id, stdout=0, stderr=0)
        self._queue(
            Exec(
                command_id=order.command_id,
                channel=channel,
                session=order.session,
                lease_epoch=order.lease_epoch,
                digest=order.digest,
                spec=order.spec,
                ttl_ms=order.ttl_ms,
            )
        )

    def send_cancel(self, command_id: str) -> None:
        """Ask for a command's end; as often as you like. Raises as ``send_exec`` does."""
        self._must_be_synced()
        self._queue(CancelCommand(command_id=command_id))

    def send_stdin(self, command_id: str, data: bytes, *, offset: int = 0) -> None:
        """Send a command's whole input; *offset* is how much the device has already.

        Raises as ``send_exec`` does.
        """
        self._must_be_synced()
        self._feeds.add(command_id, data, offset)
        self._wake.ring()

    def final_ack(self, command_id: str) -> None:
        """Let the device forget a command whose end is stored."""
        self._tracks.close(command_id)
        self._feeds.drop(command_id)
        self._queue(FinalAck(command_id=command_id))

    def cut(self, code: CloseCode, reason: str) -> None:
        """End the link at once, from anywhere; the first reason stands."""
        self._finish(code, reason)

    # -------------------------------------------------------------- its life
    async def run(self, inbound: Inbound) -> LinkEnd:
        """Serve the link until it ends; the transport is closed or cut when this returns.

        Errors of *inbound* are not caught: they end the link and come out as a group.
        """
        self._heard_at = self._clock.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                name = f"link {self.device_id}"
                parts = (self._read, self._write, lambda: self._handle_all(inbound))
                tasks = [group.create_task(self._guard(part), name=name) for part in parts]
                await self._guard(self._watch)
                for task in tasks:
                    task.cancel()
            await self._close()
        finally:
            self._finish(None, "stopped")
            self._transport.abort()
        return self._end

    async def _guard(self, part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except GoneError as error:
            self._finish(None, str(error))
        except WireError as error:
            log.warning(
                "link.refused",
                extra={"device": self.device_id, "code": error.code, "reason": str(error)},
            )
            self._finish(CloseCode.PROTOCOL, error.code)

    def _finish(self, code: CloseCode | None, reason: str) -> None:
        if not self._ended.is_rung:
            self._end = LinkEnd(code=code, reason=reason)
            self._ended.ring()

    async def _close(self) -> None:
        if self._end.code is None:
            return
        try:
            async with asyncio.timeout(self._times.close_s):
                await self._transport.close(self._end.code, self._end.reason)
        except (TimeoutError, GoneError):
            log.info("link.close_cut_short", extra={"device": self.device_id})

    async def _watch(self) -> None:
        """Ping, and give up on a peer that says nothing, or that never comes to the point.

        Returns when the link has ended for another reason.
        """
        born = now = self._clock.monotonic()
        number, ping_at = 0, born + self._times.ping_s
        while True:
            dead_at = (now if self._is_full else self._heard_at) + self._times.dead_s
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(ping_at, dead_at) - now)):
                    await self._ended.wait()
                    return
            now = self._clock.monotonic()
            if now - self._heard_at >= self._times.dead_s and not self._is_full:
                raise GoneError
            if not self._is_synced and now - born >= self._times.sync_s:
                raise SequenceError(expected="an inventory")
            if now >= ping_at:
                number, ping_at = number + 1, now + self._times.ping_s
                self._queue(Ping(number=number))

    # -------------------------------------------------------------- out
    def _must_be_synced(self) -> None:
        if not self.is_synced:
            raise IllegalMoveError(device=self.device_id, phase=self._session.phase)

    def _queue(self, message: Message) -> None:
        if len(self._control) >= MAX_QUEUED:  # it asks and asks, and never reads
            self._finish(CloseCode.SLOW_DOWN, "wire.queue")
        self._control.put(message)
        self._wake.ring()

    async def _write(self) -> None:
        while True:
            frame = self._next_frame()
            if frame is None:
                self._wake.silence()
                await self._wake.wait()
                continue
            try:
                async with asyncio.timeout(self._times.dead_s):
                    await self._transport.send(frame)
                    await asyncio.sleep(0)  # a send that is not held up lets nobody else in
            except TimeoutError as error:
                raise GoneError from error
            except GoneError as error:
                self._intray.end(error)  # what it said before it left still counts
                return

    def _next_frame(self) -> str | bytes | None:
        if (message := self._control.take()) is not None:
            return self._session.send(message)
        piece = self._feeds.next(self._tracks.channel)
        return None if piece is None else self._session.send_data(piece)

    # -------------------------------------------------------------- in
    async def _read(self) -> None:
        """Read and check every frame; what ends the link is handled behind what came before it."""
        while True:
            try:
                frame = await self._transport.receive()
            except GoneError as error:
                self._intray.end(error)
                return
            try:
                read = self._opened(frame)
            except UnsupportedError as error:
                self._queue(Problem(code=error.code, about=str(error.data)[:200]))
            else:
                await self._lay_in(read)
            self._heard_at = self._clock.monotonic()

    def _opened(self, frame: str | bytes) -> Message | Data | None:
        if isinstance(frame, bytes):
            return self._session.receive_data(frame)
        return self._session.receive(frame)

    async def _lay_in(self, read: Message | Data | None) -> None:
        """Leave it to the handler; a ping is answered however long that takes."""
        if isinstance(read, Ping):
            self._queue(Pong(number=read.number))
        elif read is not None:
            self._is_full = True  # the other side is not dead because we don't read
            await self._intray.put(read)
            self._is_full = False

    async def _handle_all(self, inbound: Inbound) -> None:
        while True:
            taken = await self._intray.take()
            if isinstance(taken, Data):
                await self._on_data(inbound, taken)
            else:
                await self._on_message(inbound, taken)

    async def _on_message(self, inbound: Inbound, message: Message) -> None:
        match message:
            case Inventory():
                await self._on_inventory(inbound, message)
            case Ack():
                self._feeds.acked(message.command_id, message.stream, message.offset)
                self._wake.ring()
            case Workspaces():
                await inbound.on_workspaces(message)
            case StateReport() | Refused() | FinalReport():
                await self._on_report(inbound, message)
            case Problem():
                log.warning(
                    "link.problem",
                    extra={
                        "device": self.device_id,
                        "code": message.code[:64],
                        "about": message.about[:200],
                    },
                )
            case _:  # Ping and Pong, and what only a hub may send: the session refused it
                pass

    async def _on_inventory(self, inbound: Inbound, part: Inventory) -> None:
        self._held.extend(part.commands)
        if len(self._held) > MAX_HELD:
            raise SequenceError(commands=len(self._held), max_commands=MAX_HELD)
        if part.more:
            return
        plan = await inbound.on_inventory(tuple(self._held))
        self._held.clear()
        self._send_sync(plan)
        self._is_synced = True
        await inbound.on_synced()

    def _send_sync(self, plan: SyncPlan) -> None:
        wanted = [
            Wanted(
                command_id=follow.command_id,
                channel=self._tracks.open(
                    follow.command_id, stdout=follow.stdout, stderr=follow.stderr
                ),
                stdout=follow.stdout,
                stderr=follow.stderr,
            )
            for follow in plan.follow
        ]
        longest = max(len(wanted), len(plan.cancel), len(plan.forget), 1)
        for at in range(0, longest, SYNC_PART):
            end = at + SYNC_PART
            self._queue(
                Sync(
                    commands=tuple(wanted[at:end]),
                    cancel=plan.cancel[at:end],
                    forget=plan.forget[at:end],
                    more=end < longest,
                )
            )

    async def _on_report(
        self, inbound: Inbound, message: StateReport | Refused | FinalReport
    ) -> None:
        if not self._tracks.has(message.command_id):
            self._stray(message.command_id)
            return
        match message:
            case StateReport():
                await inbound.on_state(message)
            case Refused():
                await inbound.on_refused(message)
            case FinalReport():
                self._tracks.check_whole(message.command_id, message.outcome)
                await inbound.on_final(message.command_id, message.outcome)
                self.final_ack(message.command_id)

    async def _on_data(self, inbound: Inbound, frame: Data) -> None:
        track = self._tracks.find(frame.channel)
        if track is None:
            self._stray(f"channel {frame.channel}")
            return
        stream, offset = track.stream(frame.kind), frame.offset
        skip = track.skip(frame)
        end = codec.after(frame)
        if end > offset + skip:
            if Flag.GAP in frame.flags:
                count = end - offset - skip
                await inbound.on_omitted(track.command_id, stream, offset + skip, count)
            else:
                data = frame.payload[skip:]
                await inbound.on_output(track.command_id, stream, offset + skip, data)
            track.advance(stream, end)
        at = track.at[stream]
        self._queue(Ack(command_id=track.command_id, stream=stream, offset=at))

    def _stray(self, what: str) -> None:
        """Drop a report of something that is not on this link; say so once, count the rest."""
        self.strays += 1
        if self.strays == 1:
            log.warning("link.stray", extra={"device": self.device_id, "about": what[:80]})
