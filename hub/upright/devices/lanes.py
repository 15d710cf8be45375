"""Lanes: which commands are on a link, how far their output has come, and their input going out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from upright_wire.command import Outcome, Stream
from upright_wire.credit import Credit
from upright_wire.errors import FrameError, SequenceError
from upright_wire.frames import MAX_PAYLOAD_BYTES, Data, Flag, Kind

MAX_CHANNEL = 2**16 - 1
_STREAM_OF = {Kind.STDOUT: Stream.STDOUT, Kind.STDERR: Stream.STDERR}


@dataclass(slots=True, kw_only=True)
class Track:
    """One command's output on this link: everything before ``at`` is stored."""

    command_id: str
    channel: int
    at: dict[Stream, int]

    def stream(self, kind: Kind) -> Stream:
        """Return the stream of an output frame."""
        return _STREAM_OF[kind]

    def skip(self, frame: Data) -> int:
        """Return how many bytes of the frame are here already.

        Raises:
            SequenceError: bytes before it are missing.
        """
        at = self.at[self.stream(frame.kind)]
        if frame.offset > at:
            raise SequenceError(command=self.command_id, offset=frame.offset, expected=at)
        return at - frame.offset

    def advance(self, stream: Stream, offset: int) -> None:
        """Note that everything before *offset* is stored."""
        self.at[stream] = max(self.at[stream], offset)


class Tracks:
    """The commands on a link, by id and by channel."""

    __slots__ = (
        "_by_channel",
        "_channels",
        "_last",
    )

    def __init__(self) -> None:
        self._by_channel: dict[int, Track] = {}
        self._channels: dict[str, int] = {}
        self._last = 0

    def open(self, command_id: str, *, stdout: int, stderr: int) -> int:
        """Give a command its channel; one that has a channel keeps it, and its offsets."""
        channel = self._channels.get(command_id)
        if channel is None:
            channel = self._free()
            at = {Stream.STDOUT: stdout, Stream.STDERR: stderr}
            self._by_channel[channel] = Track(command_id=command_id, channel=channel, at=at)
            self._channels[command_id] = channel
        return channel

    def close(self, command_id: str) -> None:
        """Take a command off the link."""
        channel = self._channels.pop(command_id, None)
        if channel is not None:
            del self._by_channel[channel]

    def has(self, command_id: str) -> bool:
        """Say whether a command is on this link."""
        return command_id in self._channels

    def channel(self, command_id: str) -> int | None:
        """Return a command's channel."""
        return self._channels.get(command_id)

    def find(self, channel: int) -> Track | None:
        """Return the command on this channel."""
        return self._by_channel.get(channel)

    def check_whole(self, command_id: str, outcome: Outcome) -> None:
        """Refuse an end that comes before the last byte of output.

        Raises:
            SequenceError: a stream has more bytes than have come.
        """
        at = self._by_channel[self._channels[command_id]].at
        totals = {Stream.STDOUT: outcome.stdout.bytes, Stream.STDERR: outcome.stderr.bytes}
        if at != totals:
            raise SequenceError(command=command_id, stored=dict(at), totals=totals)

    def _free(self) -> int:
        """Return the next channel that nobody has; a used one comes round again late."""
        for _ in range(MAX_CHANNEL):
            self._last = self._last % MAX_CHANNEL + 1
            if self._last not in self._by_channel:
                return self._last
        raise FrameError(channels=MAX_CHANNEL)


@dataclass(slots=True, kw_only=True)
class _Feed:
    data: bytes
    has_ended: bool = False


@dataclass(slots=True)
class Feeds:
    """Input on its way to commands: a piece of each in turn, within the credit."""

    _feeds: dict[str, _Feed] = field(default_factory=dict)
    _turns: list[str] = field(default_factory=list)
    _credit: Credit = field(default_factory=Credit)

    def add(self, command_id: str, data: bytes, offset: int) -> None:
        """Begin to send *data* from *offset* on."""
        self.drop(command_id)
        self._feeds[command_id] = _Feed(data=data)
        self._turns.append(command_id)
        self._credit.open(command_id, Stream.STDIN, min(offset, len(data)))

    def drop(self, command_id: str) -> None:
        """Forget a command's input."""
        if self._feeds.pop(command_id, None) is not None:
            self._turns.remove(command_id)
            self._credit.close(command_id)

    def acked(self, command_id: str, stream: Stream, offset: int) -> None:
        """Note that the device has stored its input up to *offset*."""
        self._credit.acked(command_id, stream, offset)
        feed = self._feeds.get(command_id)
        if feed is not None and feed.has_ended and offset >= len(feed.data):
            self.drop(command_id)

    def next(self, channel_of: Callable[[str], int | None]) -> Data | None:
        """Return the next piece to be sent, of whose turn it is; None: nothing may be sent now."""
        for _ in range(len(self._turns)):
            command_id = self._turns[0]
            self._turns.append(self._turns.pop(0))
            channel, feed = channel_of(command_id), self._feeds[command_id]
            if channel is not None and not feed.has_ended:
                piece = self._piece(command_id, channel, feed)
                if piece is not None:
                    return piece
        return None

    def _piece(self, command_id: str, channel: int, feed: _Feed) -> Data | None:
        offset = self._credit.offset(command_id, Stream.STDIN)
        room = min(self._credit.room(command_id), MAX_PAYLOAD_BYTES)
        payload = feed.data[offset : offset + room]
        end = offset + len(payload)
        feed.has_ended = end == len(feed.data)
        if not payload and not feed.has_ended:
            return None
        self._credit.sent(command_id, Stream.STDIN, end)
        flags = Flag.END if feed.has_ended else Flag.NONE
        return Data(kind=Kind.STDIN, channel=channel, offset=offset, payload=payload, flags=flags)
