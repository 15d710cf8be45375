"""A device that is let in and then breaks the rules: what the hub's end of the link does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from fixtures.wire_world import DEVICE_ID, End, World, order, socket_pair
from upright.devices.link import MAX_HELD, MAX_QUEUED
from upright_execd.link import shake_hands
from upright_execd.socket import GoneError
from upright_wire import codec
from upright_wire.command import Ending, Outcome, Started, State, Stream, Totals
from upright_wire.frames import (
    Ack,
    CloseCode,
    Data,
    Exec,
    FinalAck,
    FinalReport,
    Flag,
    Held,
    Inventory,
    Kind,
    Message,
    Ping,
    Pong,
    Problem,
    Side,
    StateReport,
    Sync,
)
from upright_wire.session import Session

pytestmark = pytest.mark.looptime


@dataclass
class Rogue:
    """A device that says what the test wants."""

    socket: End
    session: Session

    async def say(self, *items: Message | Data) -> None:
        for item in items:
            if isinstance(item, Data):
                await self.socket.send(self.session.send_data(item))
            else:
                await self.socket.send(self.session.send(item))

    async def hear(self) -> Message | None:
        async with asyncio.timeout(5):
            return self.session.receive(str(await self.socket.receive()))

    async def hear_nothing_more(self) -> int | None:
        """Read to the end and return the close code."""
        with contextlib.suppress(GoneError):
            while True:
                await self.socket.receive()
        return self.socket.closed_with


@contextlib.asynccontextmanager
async def rogue(world: World) -> AsyncIterator[Rogue]:
    """Be welcomed."""
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="192.0.2.1"))
        session = Session(Side.DEVICE)
        await shake_hands(device, session, world.me)
        try:
            yield Rogue(socket=device, session=session)
        finally:
            device.abort()


@contextlib.asynccontextmanager
async def running(world: World) -> AsyncIterator[Rogue]:
    """Be sent one command, on channel 1."""
    world.dispatcher.orders = [order()]
    async with rogue(world) as device:
        await device.say(Inventory(commands=()))
        assert isinstance(await device.hear(), Sync)
        sent = await device.hear()
        assert isinstance(sent, Exec)
        assert sent.channel == 1
        yield device


def out(offset: int, payload: bytes, flags: Flag = Flag.NONE, channel: int = 1) -> Data:
    return Data(kind=Kind.STDOUT, channel=channel, offset=offset, payload=payload, flags=flags)


def ended(stdout: int) -> FinalReport:
    outcome = Outcome(
        ending=Ending.EXITED, started=Started.YES, number=0, stdout=Totals(bytes=stdout)
    )
    return FinalReport(command_id="jb_1", outcome=outcome)


@pytest.mark.clause("E5.4")
async def test_output_that_overlaps_is_stored_once_and_acknowledged() -> None:
    world = World()
    async with running(world) as device:
        await device.say(out(0, b"abc"), out(1, b"bcde"), out(0, b"ab"))
        acks = [await device.hear() for _ in range(3)]
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == b"abcde"
    assert acks == [
        Ack(command_id="jb_1", stream=Stream.STDOUT, offset=offset) for offset in (3, 5, 5)
    ]


@pytest.mark.clause("E5.4")
async def test_a_gap_that_overlaps_counts_only_what_is_missing() -> None:
    world = World()
    async with running(world) as device:
        await device.say(out(0, b"abc"), codec.gap(Kind.STDOUT, 1, 1, 10))
        await device.hear()
        assert await device.hear() == Ack(command_id="jb_1", stream=Stream.STDOUT, offset=11)
    assert world.dispatcher.omitted == [("jb_1", Stream.STDOUT, 3, 8)]


async def test_an_empty_end_is_acknowledged_and_stores_nothing() -> None:
    world = World()
    async with running(world) as device:
        await device.say(out(0, b"", Flag.END))
        assert await device.hear() == Ack(command_id="jb_1", stream=Stream.STDOUT, offset=0)
    assert not world.dispatcher.output["jb_1", Stream.STDOUT]


@pytest.mark.clause("E2.4", "E5.4")
async def test_output_with_a_hole_before_it_is_a_protocol_error() -> None:
    world = World()
    async with running(world) as device:
        await device.say(out(1, b"bc"))
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL
    assert not world.dispatcher.output["jb_1", Stream.STDOUT]


async def test_an_end_that_is_ahead_of_its_output_is_never_stored() -> None:
    world = World()
    async with running(world) as device:
        await device.say(out(0, b"ab"), ended(3))
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL
    assert not world.dispatcher.finals


@pytest.mark.case("BK/1208")
@pytest.mark.clause("E5.4")
async def test_reports_of_commands_that_are_not_on_this_link_are_dropped_and_counted() -> None:
    world = World()
    async with running(world) as device:
        await device.say(
            StateReport(command_id="jb_other", state=State.STARTED),
            out(0, b"x", channel=9),
            ended(0),
        )
        assert await device.hear() == FinalAck(command_id="jb_1")
        await device.say(out(0, b"late"), StateReport(command_id="jb_1", state=State.STARTED))
        await device.say(Ping(number=1))
        assert await device.hear() == Pong(number=1)
        assert world.dispatcher.link is not None
        assert world.dispatcher.link.strays == 4
    assert not world.dispatcher.states
    assert not any(world.dispatcher.output.values())


@pytest.mark.clause("E3.2")
async def test_a_type_that_the_hub_does_not_know_is_answered_and_the_link_goes_on() -> None:
    world = World()
    async with running(world) as device:
        seq = device.session._sent
        text = json.dumps({"type": "dance", "seq": seq})
        sealed = f"{text}\n{device.session._mac_out(b'T', text.encode()).hex()}"
        device.session._sent += 1
        await device.socket.send(sealed)
        answer = await device.hear()
        assert isinstance(answer, Problem)
        assert answer.code == "wire.unsupported"
        await device.say(Problem(code="whatever"), Ping(number=2))
        assert await device.hear() == Pong(number=2)


async def test_a_message_that_has_no_place_yet_ends_the_link() -> None:
    world = World()
    async with rogue(world) as device:
        device.session.phase = type(device.session.phase).SYNCED
        await device.say(StateReport(command_id="jb_1", state=State.STARTED))
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL


async def test_an_inventory_without_end_is_cut_off() -> None:
    world = World()
    held = Held(command_id="jb_1", digest="0" * 64, state=State.STARTED)
    part = Inventory(commands=(held,) * 200, more=True)
    async with rogue(world) as device:
        await device.say(*([part] * (MAX_HELD // 200)))
        assert not device.socket.is_gone
        await device.say(part)
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL


@pytest.mark.clause("E2.5")
async def test_a_device_that_pings_but_never_comes_to_the_point_is_cut_off() -> None:
    world = World()
    async with rogue(world) as device:
        for number in range(7):
            await asyncio.sleep(10)  # virtual
            if not device.socket.is_gone:
                await device.say(Ping(number=number))
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL


async def test_a_device_that_asks_and_never_reads_is_cut_off() -> None:
    world = World()
    async with running(world) as device:
        assert device.socket.peer is not None
        device.socket.peer.is_stuck = True
        for number in range(MAX_QUEUED + 2):
            await device.say(Ping(number=number))
        await device.hear_nothing_more()
    assert DEVICE_ID not in world.links.online()


@pytest.mark.clause("E2.5")
async def test_a_device_that_does_not_read_is_given_up_after_40_seconds() -> None:
    world = World()
    async with running(world) as device:
        assert device.socket.peer is not None
        device.socket.peer.is_stuck = True
        began = world.clock.monotonic()
        for number in range(5):
            await asyncio.sleep(10)  # virtual
            if not device.socket.is_gone:
                await device.say(Ping(number=number))
        await device.hear_nothing_more()
        assert world.clock.monotonic() - began <= 51


@pytest.mark.clause("E4.6")
async def test_more_input_is_acknowledged_than_was_sent_ends_the_link() -> None:
    world = World()
    world.dispatcher.stdin = {"jb_1": b"abc"}
    async with running(world) as device:
        await device.socket.receive()
        device.session._received += 1
        await device.say(Ack(command_id="jb_1", stream=Stream.STDIN, offset=4))
        assert await device.hear_nothing_more() == CloseCode.PROTOCOL
