"""Sessions: the law of one link, as a table; it does not know which of the two sides it serves.

Both peers feed what they send and what they receive through the same machine. Every frame carries
a number per direction, counted over text and data; after ``welcome`` its MAC covers that number.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from upright_wire import codec
from upright_wire.errors import FrameError, IllegalMoveError, MacError, SequenceError
from upright_wire.frames import (
    MAX_FIRST_BYTES,
    MAX_TEXT_BYTES,
    Ack,
    CancelCommand,
    Challenge,
    Data,
    Exec,
    FinalAck,
    FinalReport,
    Hello,
    Inventory,
    Kind,
    Message,
    PairCommit,
    PairOffer,
    PairPending,
    PairResult,
    PairResume,
    PairReveal,
    Ping,
    Pong,
    Problem,
    Refused,
    Side,
    StateReport,
    Sync,
    Welcome,
    Workspaces,
)
from upright_wire.handshake import MAC_BYTES, LinkKeys, check_mac, mac


class Phase(StrEnum):
    """How far a conversation has come."""

    OPEN = "open"
    CHALLENGED = "challenged"
    GREETED = "greeted"
    WELCOMED = "welcomed"  # the inventory is due
    LISTED = "listed"  # the sync is due
    SYNCED = "synced"
    COMMITTED = "committed"
    OFFERED = "offered"
    REVEALED = "revealed"
    PENDING = "pending"
    SETTLED = "settled"


class InventoryPart:
    """The event of an ``inventory`` that more follows."""


class SyncPart:
    """The event of a ``sync`` that more follows."""


Event = type[Message] | type[Data] | type[InventoryPart] | type[SyncPart]

_BOTH: Final = frozenset(Side)
_HUB: Final = frozenset({Side.HUB})
_DEVICE: Final = frozenset({Side.DEVICE})
_SEALED: Final = frozenset({Phase.WELCOMED, Phase.LISTED, Phase.SYNCED})

SENDERS: Final[Mapping[type[Message], frozenset[Side]]] = {
    Challenge: _HUB,
    Hello: _DEVICE,
    Welcome: _HUB,
    PairCommit: _DEVICE,
    PairOffer: _HUB,
    PairReveal: _DEVICE,
    PairResume: _DEVICE,
    PairPending: _HUB,
    PairResult: _HUB,
    Inventory: _DEVICE,
    Sync: _HUB,
    Exec: _HUB,
    CancelCommand: _HUB,
    Refused: _DEVICE,
    StateReport: _DEVICE,
    Ack: _BOTH,
    FinalReport: _DEVICE,
    FinalAck: _HUB,
    Workspaces: _DEVICE,
    Ping: _BOTH,
    Pong: _BOTH,
    Problem: _BOTH,
}

TRANSITIONS: Final[Mapping[tuple[Phase, Event], Phase]] = {
    # who are you
    (Phase.OPEN, Challenge): Phase.CHALLENGED,
    (Phase.CHALLENGED, Hello): Phase.GREETED,
    (Phase.GREETED, Welcome): Phase.WELCOMED,
    # what do we have
    (Phase.WELCOMED, InventoryPart): Phase.WELCOMED,
    (Phase.WELCOMED, Inventory): Phase.LISTED,
    (Phase.LISTED, SyncPart): Phase.LISTED,
    (Phase.LISTED, Sync): Phase.SYNCED,
    # work
    **{
        (Phase.SYNCED, event): Phase.SYNCED
        for event in (
            Exec,
            CancelCommand,
            Refused,
            StateReport,
            Ack,
            FinalReport,
            FinalAck,
            Workspaces,
            Data,
        )
    },
    # pairing
    (Phase.CHALLENGED, PairCommit): Phase.COMMITTED,
    (Phase.CHALLENGED, PairResume): Phase.REVEALED,
    (Phase.COMMITTED, PairOffer): Phase.OFFERED,
    (Phase.OFFERED, PairReveal): Phase.REVEALED,
    (Phase.REVEALED, PairPending): Phase.PENDING,
    (Phase.REVEALED, PairResult): Phase.SETTLED,
    (Phase.PENDING, PairResult): Phase.SETTLED,
    # are you there
    **{(phase, event): phase for phase in (*_SEALED, Phase.PENDING) for event in (Ping, Pong)},
    **{(phase, Problem): phase for phase in Phase if phase is not Phase.OPEN},
}


def event_of(message: Message) -> Event:
    """Return the event that a message is: parts are other events than the last."""
    if isinstance(message, Inventory) and message.more:
        return InventoryPart
    if isinstance(message, Sync) and message.more:
        return SyncPart
    return type(message)


def step(phase: Phase, event: Event) -> Phase:
    """Return the phase after *event*.

    Raises:
        IllegalMoveError: it has no place here.
    """
    after = TRANSITIONS.get((phase, event))
    if after is None:
        raise IllegalMoveError(phase=phase, event=event.__name__)
    return after


class Session:
    """One side of one link. Any error it raises ends the link, but UnsupportedError.

    Frames must leave in the order in which they were made here.
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self.peer = Side.DEVICE if side is Side.HUB else Side.HUB
        self.phase = Phase.OPEN
        self._keys: LinkKeys | None = None
        self._sent = 0
        self._received = 0

    def arm(self, keys: LinkKeys) -> None:
        """Seal every frame from here on; called once, right after ``welcome``."""
        if self._keys is not None or self.phase is not Phase.WELCOMED:
            raise IllegalMoveError(phase=self.phase, event="arm")
        self._keys = keys

    # -------------------------------------------------------------- out
    def send(self, message: Message) -> str:
        """Return the text frame of a message."""
        self._may_send(type(message), is_mine=self.side in SENDERS[type(message)])
        phase = step(self.phase, event_of(message))
        text = codec.encode_text(message, self._sent)
        if self._keys is not None:
            text = f"{text}\n{self._mac_out(b'T', text.encode()).hex()}"
        self.phase = phase
        self._sent += 1
        return text

    def send_data(self, frame: Data) -> bytes:
        """Return the binary frame of a piece of a stream."""
        self._may_send(Data, is_mine=(frame.kind is Kind.STDIN) is (self.side is Side.HUB))
        phase = step(self.phase, Data)
        data = codec.encode_data(frame)
        data += self._mac_out(b"B", data)
        self.phase = phase
        self._sent += 1
        return data

    # -------------------------------------------------------------- in
    def receive(self, text: str) -> Message | None:
        """Read a text frame; None: it may be skipped.

        Raises:
            UnsupportedError: its type is not known; the link goes on, and the peer is told.
            WireError: every other one ends the link.
        """
        seq = self._next_in()
        envelope = codec.decode_text(
            self._unsealed_text(text, seq), max_bytes=self._max_text_bytes()
        )
        if envelope.seq != seq:
            raise SequenceError(seq=envelope.seq, expected=seq)
        message = codec.message_of(envelope)
        if message is not None:
            if self.peer not in SENDERS[type(message)]:
                raise IllegalMoveError(event=message.TYPE, sender=self.peer)
            self.phase = step(self.phase, event_of(message))
        return message

    def receive_data(self, data: bytes) -> Data:
        """Read a binary frame.

        Raises:
            UnsupportedError: its kind is not known; the link goes on, and the peer is told.
            WireError: every other one ends the link.
        """
        seq = self._next_in()
        if self._keys is None:
            raise IllegalMoveError(phase=self.phase, event="data")
        body, given = data[:-MAC_BYTES], data[-MAC_BYTES:]
        check_mac(mac(self._keys.of(self.peer), seq, b"B", body), given)
        frame = codec.decode_data(body)
        if (frame.kind is Kind.STDIN) is (self.peer is Side.DEVICE):
            raise IllegalMoveError(event=frame.kind.name, sender=self.peer)
        self.phase = step(self.phase, Data)
        return frame

    # -------------------------------------------------------------- inside
    def _may_send(self, event: Event, *, is_mine: bool) -> None:
        if not is_mine or (self.phase in _SEALED and self._keys is None):
            raise IllegalMoveError(phase=self.phase, event=event.__name__, sender=self.side)

    def _next_in(self) -> int:
        if self.phase in _SEALED and self._keys is None:
            raise IllegalMoveError(phase=self.phase, event="unsealed")
        seq, self._received = self._received, self._received + 1
        return seq

    def _max_text_bytes(self) -> int:
        return MAX_FIRST_BYTES if self._keys is None else MAX_TEXT_BYTES

    def _mac_out(self, kind: bytes, frame: bytes) -> bytes:
        if self._keys is None:
            raise IllegalMoveError(phase=self.phase, event="data")
        return mac(self._keys.of(self.side), self._sent, kind, frame)

    def _unsealed_text(self, text: str, seq: int) -> str:
        if self._keys is None:
            return text
        body, _, given = text.rpartition("\n")
        if len(text) > MAX_TEXT_BYTES + 1 + 2 * MAC_BYTES:
            raise FrameError(chars=len(text), max_bytes=MAX_TEXT_BYTES)
        if not text.isascii():
            raise MacError
        expected = mac(self._keys.of(self.peer), seq, b"T", body.encode("ascii"))
        check_mac(expected.hex().encode("ascii"), given.encode("ascii"))
        return body
