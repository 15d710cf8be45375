from __future__ import annotations

import pytest

from fixtures.wire_world import FakeCommands
from upright_execd.lanes import AHEAD_BYTES, Item, Lane, Lanes
from upright_execd.ports import Piece, Snapshot
from upright_wire.command import Ending, Outcome, Started, State, Stream, Totals
from upright_wire.frames import Ack, Data, FinalReport, Flag, Kind, Limits

SIZE = 3 * AHEAD_BYTES // 2
DATA = bytes(n * 7 % 251 for n in range(SIZE))
ENDED = Outcome(
    ending=Ending.EXITED, started=Started.YES, number=0, stdout=Totals(bytes=SIZE, sha256="x")
)


class Ended(FakeCommands):
    """A command that ended, with all its output in the spool; counts how often that is read."""

    reads = 0

    async def look(self, command_id: str) -> Snapshot | None:
        return Snapshot(
            command_id=command_id, state=State.FINAL, started=Started.YES, outcome=ENDED
        )

    async def read(self, command_id: str, stream: Stream, offset: int, max_bytes: int) -> Piece:
        if stream is Stream.STDERR:
            return Piece(end=True)
        self.reads += 1
        data = DATA[offset : offset + max_bytes]
        return Piece(data=data, end=offset + len(data) == SIZE)


async def sent(offset: int = 0) -> tuple[list[Item], int]:
    commands = Ended()
    lanes = Lanes(commands, Limits())
    lanes.open(Lane(command_id="jb_1", channel=1), {Stream.STDOUT: offset, Stream.STDERR: 0})
    items: list[Item] = []
    while (item := await lanes.next()) is not None:
        items.append(item)
        if isinstance(item, Data):
            end = item.offset + len(item.payload)
            lanes.acked(Ack(command_id="jb_1", stream=Stream.STDOUT, offset=end))
    return items, commands.reads


@pytest.mark.clause("E3.1")
async def test_every_byte_is_sent_once_in_order_and_only_the_last_frame_is_the_end() -> None:
    items, _ = await sent(offset=1000)
    *frames, final = items
    assert isinstance(final, FinalReport)
    assert final.outcome == ENDED
    data = [frame for frame in frames if isinstance(frame, Data)]
    assert b"".join(frame.payload for frame in data) == DATA[1000:]
    assert {frame.kind for frame in data} == {Kind.STDOUT}
    assert [Flag.END in frame.flags for frame in data] == [False] * (len(data) - 1) + [True]


async def test_many_frames_cost_one_look_into_the_spool() -> None:
    items, reads = await sent()
    assert (len(items), reads) == (SIZE // 65_536 + 1, 2)
