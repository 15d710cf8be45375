"""Credit: how many bytes may be under way, per command and per link (E3.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from upright_wire.command import Stream
from upright_wire.errors import CreditError
from upright_wire.frames import COMMAND_CREDIT_BYTES, LINK_CREDIT_BYTES


@dataclass(slots=True, kw_only=True)
class _Lane:
    sent: int
    acked: int


@dataclass(slots=True, kw_only=True)
class Credit:
    """The sender's book of what is sent and not yet acknowledged.

    Out of credit means: stop sending. It never means: stop reading the pipe.
    """

    command_bytes: int = COMMAND_CREDIT_BYTES
    link_bytes: int = LINK_CREDIT_BYTES
    _lanes: dict[str, dict[Stream, _Lane]] = field(default_factory=dict)
    _under_way: int = 0

    def open(self, command_id: str, stream: Stream, offset: int) -> None:
        """Begin a stream at the offset from which the far side wants it."""
        self._lanes.setdefault(command_id, {})[stream] = _Lane(sent=offset, acked=offset)

    def offset(self, command_id: str, stream: Stream) -> int:
        """Return how far a stream is sent."""
        return self._lanes[command_id][stream].sent

    def room(self, command_id: str) -> int:
        """Return how many bytes this command may send now."""
        mine = sum(lane.sent - lane.acked for lane in self._lanes[command_id].values())
        return max(0, min(self.command_bytes - mine, self.link_bytes - self._under_way))

    def sent(self, command_id: str, stream: Stream, offset: int) -> None:
        """Note that everything before *offset* is sent."""
        lane = self._lanes[command_id][stream]
        self._under_way += offset - lane.sent
        lane.sent = offset

    def skipped(self, command_id: str, stream: Stream, offset: int) -> None:
        """Note a gap up to *offset*: nothing was sent for it, so it takes no credit."""
        lane = self._lanes[command_id][stream]
        lane.acked += offset - lane.sent
        lane.sent = offset

    def acked(self, command_id: str, stream: Stream, offset: int) -> None:
        """Note an acknowledgement; an old one is nothing new, one of an unknown command neither.

        Raises:
            CreditError: more is acknowledged than was sent.
        """
        lane = self._lanes.get(command_id, {}).get(stream)
        if lane is None:
            return
        if offset > lane.sent:
            raise CreditError(command=command_id, acked=offset, sent=lane.sent)
        self._under_way -= max(0, offset - lane.acked)
        lane.acked = max(lane.acked, offset)

    def close(self, command_id: str) -> None:
        """Forget a command; what it had under way is free again."""
        lanes = self._lanes.pop(command_id, {})
        self._under_way -= sum(lane.sent - lane.acked for lane in lanes.values())
