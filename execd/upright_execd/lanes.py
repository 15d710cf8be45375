"""Lanes: the commands on a link, and which of their frames goes out next (round robin)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from upright_execd.ports import Commands, Piece, Snapshot
from upright_wire import codec
from upright_wire.command import Ending, Outcome, State, Stream
from upright_wire.credit import Credit
from upright_wire.errors import FrameError
from upright_wire.frames import (
    MAX_PAYLOAD_BYTES,
    Ack,
    Data,
    FinalReport,
    Flag,
    Kind,
    Limits,
    StateReport,
)

log = logging.getLogger(__name__)

AHEAD_BYTES: Final = 512 * 1024
OUTPUTS: Final = (Stream.STDOUT, Stream.STDERR)
_KIND: Final = {Stream.STDOUT: Kind.STDOUT, Stream.STDERR: Kind.STDERR}

Item = Data | StateReport | FinalReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was read of a stream from *offset* on, and is not sent yet."""

    offset: int
    data: memoryview
    end: bool


@dataclass(slots=True, kw_only=True)
class Lane:
    """One command on this link; ``hungry`` streams may have more than is sent."""

    command_id: str
    channel: int
    has_changed: bool = True
    told: State | None = None
    outcome: Outcome | None = None
    hungry: set[Stream] = field(default_factory=set)
    ahead: dict[Stream, Ahead] = field(default_factory=dict)
    last: Stream | None = None  # whose turn it was


class Lanes:
    """All commands on this link."""

    def __init__(self, commands: Commands, limits: Limits) -> None:
        self._commands = commands
        self._max_bytes = min(limits.payload_bytes, MAX_PAYLOAD_BYTES)
        self._credit = Credit(
            command_bytes=limits.command_credit_bytes, link_bytes=limits.link_credit_bytes
        )
        self._lanes: dict[str, Lane] = {}
        self._channels: dict[int, Lane] = {}
        self._turns: deque[Lane] = deque()

    def open(self, lane: Lane, offsets: Mapping[Stream, int]) -> None:
        """Take a command up: everything from these offsets on is wanted.

        Raises:
            FrameError: the channel is another command's.
        """
        if lane.command_id in self._lanes or lane.channel in self._channels:
            raise FrameError(command=lane.command_id, channel=lane.channel)
        for stream, offset in offsets.items():
            self._credit.open(lane.command_id, stream, offset)
        self._lanes[lane.command_id] = self._channels[lane.channel] = lane
        self._turns.append(lane)

    def reopen(self, command_id: str) -> bool:
        """Tell a command's state once more; False: it is not on this link."""
        lane = self._lanes.get(command_id)
        if lane is not None:
            lane.told, lane.has_changed = None, True
        return lane is not None

    def close(self, command_id: str) -> None:
        """Take a command off; harmless when it is not on."""
        lane = self._lanes.pop(command_id, None)
        if lane is not None:
            del self._channels[lane.channel]
            self._turns.remove(lane)
            self._credit.close(command_id)

    def find(self, channel: int) -> Lane | None:
        """Return the command on this channel."""
        return self._channels.get(channel)

    def changed(self, command_id: str) -> None:
        """Look at a command again when its turn comes."""
        lane = self._lanes.get(command_id)
        if lane is not None:
            lane.has_changed = True

    def acked(self, ack: Ack) -> None:
        """Note what the hub has stored."""
        self._credit.acked(ack.command_id, ack.stream, ack.offset)

    async def next(self) -> Item | None:
        """Return what goes out next; None: nothing may, until something changes."""
        for lane in tuple(self._turns):
            self._turns.rotate(-1)
            item = await self._next_of(lane)
            if item is not None and self._lanes.get(lane.command_id) is lane:
                return item
        return None

    async def _next_of(self, lane: Lane) -> Item | None:
        if lane.has_changed:
            report = await self._look(lane)
            if report is not None:
                return report
        for stream in sorted(OUTPUTS, key=lambda stream: stream is lane.last):
            if stream in lane.hungry:
                frame = await self._read(lane, stream)
                if frame is not None:
                    return frame
        return self._final(lane)

    async def _look(self, lane: Lane) -> StateReport | None:
        lane.has_changed = False
        snapshot = await self._commands.look(lane.command_id)
        if snapshot is None:
            log.warning("link.command_vanished", extra={"command": lane.command_id})
            return None
        if snapshot.state in {State.STARTED, State.FINAL}:  # before that there is no output
            lane.hungry = set(OUTPUTS)
        if snapshot.state is State.FINAL:
            lane.outcome = snapshot.outcome
            return None
        is_news = snapshot.state is not lane.told
        lane.told = snapshot.state
        return _report(snapshot) if is_news else None

    async def _read(self, lane: Lane, stream: Stream) -> Data | None:
        room = min(self._credit.room(lane.command_id), self._max_bytes)
        if room == 0:
            return None
        offset = self._credit.offset(lane.command_id, stream)
        piece = await self._piece(lane, stream, offset, room)
        if lane.command_id not in self._lanes:  # it was taken off meanwhile
            return None
        if piece.end or not (piece.data or piece.omitted):
            lane.hungry.discard(stream)
        return self._frame(lane, stream, offset, piece)

    async def _piece(self, lane: Lane, stream: Stream, offset: int, room: int) -> Piece:
        """Return the next piece; many frames' worth is read from the spool at once."""
        ahead = lane.ahead.pop(stream, None)
        if ahead is None or ahead.offset != offset:
            piece = await self._commands.read(lane.command_id, stream, offset, AHEAD_BYTES)
            if len(piece.data) <= room:
                return piece
            ahead = Ahead(offset=offset, data=memoryview(piece.data), end=piece.end)
        data, rest = ahead.data[:room], ahead.data[room:]
        if rest:
            lane.ahead[stream] = Ahead(offset=offset + room, data=rest, end=ahead.end)
        return Piece(data=bytes(data), end=ahead.end and not rest)

    def _frame(self, lane: Lane, stream: Stream, offset: int, piece: Piece) -> Data | None:
        kind, command_id = _KIND[stream], lane.command_id
        lane.last = stream
        if piece.omitted:
            self._credit.skipped(command_id, stream, offset + piece.omitted)
            return codec.gap(kind, lane.channel, offset, piece.omitted)
        if not piece.data:
            return None
        self._credit.sent(command_id, stream, offset + len(piece.data))
        flags = Flag.END if piece.end else Flag.NONE
        return Data(kind=kind, channel=lane.channel, offset=offset, payload=piece.data, flags=flags)

    def _final(self, lane: Lane) -> FinalReport | None:
        """Return the end, once, when every byte that the spool holds has been sent."""
        if lane.outcome is None or lane.hungry or lane.told is State.FINAL or lane.has_changed:
            return None
        lane.told = State.FINAL
        return FinalReport(command_id=lane.command_id, outcome=self._whole(lane, lane.outcome))

    def _whole(self, lane: Lane, outcome: Outcome) -> Outcome:
        """Return the outcome as it is, or, when the spool was short of it, say so."""
        sent = {stream: self._credit.offset(lane.command_id, stream) for stream in OUTPUTS}
        stdout, stderr = sent[Stream.STDOUT], sent[Stream.STDERR]
        if (stdout, stderr) == (outcome.stdout.bytes, outcome.stderr.bytes):
            return outcome
        log.error(
            "link.spool_short",
            extra={"command": lane.command_id, "stdout": stdout, "stderr": stderr},
        )
        return replace(
            outcome,
            ending=Ending.LOST,
            number=None,
            text="spool_short",
            stdout=replace(outcome.stdout, bytes=stdout, sha256=None),
            stderr=replace(outcome.stderr, bytes=stderr, sha256=None),
        )


def _report(snapshot: Snapshot) -> StateReport:
    return StateReport(
        command_id=snapshot.command_id,
        state=snapshot.state,
        started=snapshot.started,
        pid=snapshot.pid,
    )
