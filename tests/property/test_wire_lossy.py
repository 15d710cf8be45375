"""Two peers over a link that breaks anywhere: nothing runs twice, no byte is lost or doubled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.wire_world import Linked, World, order
from upright_wire.command import Stream

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


Step = Write | Cut
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
    ),
    max_size=12,
)


@dataclass
class Story:
    """One run; ``written`` is what the commands wrote, to be compared with what the hub has."""

    world: World = field(default_factory=World)
    written: dict[tuple[str, Stream], bytes] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)

    def do(self, step: Step) -> None:
        match step:
            case Write(command_id=name, stream=stream, count=count):
                so_far = self.written.get((name, stream), b"")
                data = bytes((len(so_far) + n) % 251 for n in range(count))
                self.written[name, stream] = so_far + data
            case Cut():
                self.cuts.append(step)

    def arm(self, sockets: Linked) -> None:
        """Let the socket break when the next cut says so."""
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


@settings(max_examples=60)
@given(STEPS)
def test_each_command_starts_once_and_its_bytes_and_its_end_arrive_whole(
    steps: list[Step],
) -> None:
    story = Story()
    for step in steps:
        story.do(step)
    asyncio.run(story.play())
    world = story.world
    assert sorted(world.commands.starts) == sorted(COMMANDS)
    assert set(world.dispatcher.finals) == set(COMMANDS)
    for name in COMMANDS:
        for stream in OUTPUTS:
            stored = bytes(world.dispatcher.output[name, stream])
            assert stored == story.written.get((name, stream), b"")
