"""Two peers over a link that breaks anywhere, and that fall anywhere: nothing runs twice, and no
byte is lost or doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.wire_world import Dispatcher, FakeCommands, Linked, World, order
from upright.devices.transport import GoneError as HubGoneError
from upright_execd.socket import GoneError as DeviceGoneError
from upright_wire.command import Outcome, Refusal, Stream
from upright_wire.frames import Exec

T = TypeVar("T")
COMMANDS = ("jb_1", "jb_2", "jb_3")
OUTPUTS = (Stream.STDOUT, Stream.STDERR)


@dataclass(frozen=True)
class Write:
    command_id: str
    stream: Stream
    count: int


@dataclass(frozen=True)
class Cut:
    """After so many more frames of one side the socket breaks; the last of them may be lost."""

    by_hub: bool
    frames: int
    loses_last: bool


@dataclass
class Fall:
    """At so many more writes to its disk one side falls, before that write or right after it."""

    by_hub: bool
    writes: int
    is_written: bool

    def is_due(self) -> bool:
        self.writes -= 1
        return self.writes == 0


class FallingHub(Dispatcher):
    """A hub that falls: what it has not committed is gone, and what it has is not acknowledged."""

    fall: Fall | None = None

    async def on_output(self, command_id: str, stream: Stream, offset: int, data: bytes) -> None:
        await self._write(super().on_output(command_id, stream, offset, data))

    async def on_final(self, command_id: str, outcome: Outcome) -> None:
        await self._write(super().on_final(command_id, outcome))

    async def _write(self, write: Coroutine[None, None, None]) -> None:
        if self.fall is None or not self.fall.is_due():
            await write
        elif self.fall.is_written:
            await write
            raise HubGoneError
        else:
            write.close()
            raise HubGoneError


class FallingDevice(FakeCommands):
    """A device that falls: before a command is accepted, or before it has told so."""

    fall: Fall | None = None

    async def exec(self, order: Exec) -> Refusal | None:
        return await self._write(super().exec(order))

    async def final_ack(self, command_id: str) -> None:
        await self._write(super().final_ack(command_id))

    async def _write(self, write: Coroutine[None, None, T]) -> T:
        if self.fall is None or not self.fall.is_due():
            return await write
        if self.fall.is_written:
            await write
        else:
            write.close()
        raise DeviceGoneError("it fell")


Step = Write | Cut | Fall
STEPS = st.lists(
    st.one_of(
        st.builds(
            Write,
            command_id=st.sampled_from(COMMANDS),
            stream=st.sampled_from(OUTPUTS),
            count=st.integers(1, 200_000),
        ),
        st.builds(
            Cut,
            by_hub=st.booleans(),
            frames=st.integers(1, 8),
            loses_last=st.booleans(),
        ),
        st.builds(
            Fall,
            by_hub=st.booleans(),
            writes=st.integers(1, 4),
            is_written=st.booleans(),
        ),
    ),
    max_size=12,
)


@dataclass
class Story:
    """One run; ``written`` is what the commands wrote, to be compared with what the hub has."""

    hub: FallingHub = field(default_factory=FallingHub)
    device: FallingDevice = field(default_factory=FallingDevice)
    world: World = field(init=False)
    written: dict[tuple[str, Stream], bytes] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    falls: list[Fall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(dispatcher=self.hub, commands=self.device)

    def do(self, step: Step) -> None:
        match step:
            case Write(command_id=name, stream=stream, count=count):
                so_far = self.written.get((name, stream), b"")
                data = bytes((len(so_far) + n) % 251 for n in range(count))
                self.written[name, stream] = so_far + data
            case Cut():
                self.cuts.append(step)
            case Fall():
                self.falls.append(replace(step))

    def arm(self, sockets: Linked) -> None:
        """Let the socket break when the next cut says so, and a side fall at the next fall."""
        fall = self.falls.pop(0) if self.falls else None
        self.hub.fall = fall if fall is not None and fall.by_hub else None
        self.device.fall = fall if fall is not None and not fall.by_hub else None
        if not self.cuts:
            return
        cut = self.cuts.pop(0)
        end = sockets.hub if cut.by_hub else sockets.device
        left = cut.frames

        def tamper(frame: str | bytes) -> str | bytes | None:
            nonlocal left
            left -= 1
            if left == 0:
                asyncio.get_running_loop().call_soon(end.abort)
                return None if cut.loses_last else frame
            return frame

        end.tamper = tamper

    async def play(self) -> None:
        """Link again and again until the hub has every end and the device may forget all."""
        world = self.world
        world.dispatcher.orders = [order(name) for name in COMMANDS]
        async with asyncio.timeout(20):
            while len(set(world.commands.forgotten)) < len(COMMANDS):
                await self.link()

    async def link(self) -> None:
        async with self.world.linked() as sockets, asyncio.TaskGroup() as group:
            self.arm(sockets)
            finish = group.create_task(self.finish(sockets))
            await sockets.daemon
            finish.cancel()

    async def finish(self, sockets: Linked) -> None:
        """Give every command that started its output and its end."""
        commands = self.world.commands
        while True:
            commands.news.clear()
            for name, running in list(commands.held.items()):
                if running.outcome is None:
                    self.end(name)
            if len(set(commands.forgotten)) == len(COMMANDS):
                sockets.hub.abort()
            await commands.news.wait()

    def end(self, name: str) -> None:
        for stream in OUTPUTS:
            data = self.written.get((name, stream), b"")
            self.world.commands.write(name, data, stream)
        self.world.commands.end(name)


@pytest.mark.clause("E4.3", "E5.4", "E7.3", "E7.4")
@settings(max_examples=60)
@given(STEPS)
def test_each_command_starts_once_and_its_bytes_and_its_end_arrive_whole(
    steps: list[Step],
) -> None:
    story = Story()
    for step in steps:
        story.do(step)
    asyncio.run(story.play())
    check(story)


def check(story: Story) -> None:
    """See that every command started once, and that its bytes and its end are whole."""
    world = story.world
    assert sorted(world.commands.starts) == sorted(COMMANDS)
    assert set(world.dispatcher.finals) == set(COMMANDS)
    for name in COMMANDS:
        for stream in OUTPUTS:
            stored = bytes(world.dispatcher.output[name, stream])
            assert stored == story.written.get((name, stream), b"")


@pytest.mark.clause("E5.4", "E7.1")
@pytest.mark.parametrize("by_hub", [False, True])
@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("writes", [1, 2, 3, 4])
def test_a_side_that_falls_comes_back_to_what_both_have(
    *, by_hub: bool, is_written: bool, writes: int
) -> None:
    story = Story()
    for name in COMMANDS:
        story.do(Write(command_id=name, stream=Stream.STDOUT, count=100_000))
    story.do(Fall(by_hub=by_hub, writes=writes, is_written=is_written))
    asyncio.run(story.play())
    assert len(story.world.dispatcher.inventories) >= 2
    check(story)
