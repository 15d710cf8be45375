"""The device's end of a link, against a hub that says what the test wants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from fixtures.wire_world import FakeCommands, LoopClock, order, socket_pair
from upright_execd.conversation import Conversation, Times
from upright_execd.redial import Intervals, LinkEnd
from upright_wire.command import Stream
from upright_wire.frames import (
    Ack,
    CancelCommand,
    Challenge,
    CloseCode,
    Data,
    Exec,
    FinalAck,
    FinalReport,
    Flag,
    Hello,
    Inventory,
    Kind,
    Limits,
    Message,
    Ping,
    Pong,
    Problem,
    Side,
    StateReport,
    Sync,
    Wanted,
    Welcome,
    Workspace,
    Workspaces,
)
from upright_wire.handshake import LinkKeys
from upright_wire.session import Session

pytestmark = pytest.mark.looptime
KEYS = LinkKeys(hub=b"h" * 32, device=b"d" * 32)


@dataclass
class Hub:
    """A hub in a test's hand, with a device that converses."""

    session: Session
    end: asyncio.Task[LinkEnd]
    commands: FakeCommands
    sleep_s: list[float] = field(default_factory=lambda: [0.0])

    def __post_init__(self) -> None:
        self.socket, self.device = socket_pair()

    async def say(self, *items: Message | Data) -> None:
        for item in items:
            if isinstance(item, Data):
                await self.socket.send(self.session.send_data(item))
            else:
                await self.socket.send(self.session.send(item))

    async def hear(self) -> Message | Data | None:
        async with asyncio.timeout(60):
            frame = await self.socket.receive()
        if isinstance(frame, bytes):
            return self.session.receive_data(frame)
        return self.session.receive(frame)

    async def sync(self, *wanted: Wanted) -> None:
        assert isinstance(await self.hear(), Inventory)
        await self.say(Sync(commands=wanted))
        assert isinstance(await self.hear(), Workspaces)


def armed() -> tuple[Session, Session]:
    hub, device = Session(Side.HUB), Session(Side.DEVICE)
    hello = Hello(
        device_id="", host="", nonce=b"", eph=b"", boot_id="", os_boot_id="", caps=(), proto=(1, 1)
    )
    device.receive(hub.send(Challenge(hub_id="", hub_key_id="", nonce=b"", eph=b"")))
    hub.receive(device.send(hello))
    device.receive(hub.send(Welcome(link="", proto=1, caps=())))
    hub.arm(KEYS)
    device.arm(KEYS)
    return hub, device


@asynccontextmanager
async def conversing(
    commands: FakeCommands | None = None, limits: Limits | None = None
) -> AsyncIterator[Hub]:
    commands = commands or FakeCommands()
    clock, slept = LoopClock(), [0.0]
    times = Times(
        clock=clock,
        boot_time=lambda: clock.monotonic() + slept[0],
        intervals=Intervals(),
    )
    hub, device = armed()
    socket, far = socket_pair()
    far.heard_at = clock.monotonic()
    conversation = Conversation(far, device, commands, times=times, limits=limits or Limits())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(conversation.run())
        made = Hub(session=hub, end=task, commands=commands, sleep_s=slept)
        made.socket, made.device = socket, far
        try:
            yield made
        finally:
            socket.abort()


def exec_of(command_id: str = "jb_1", channel: int = 1) -> Exec:
    made = order(command_id)
    return Exec(
        command_id=command_id,
        channel=channel,
        session=made.session,
        lease_epoch=made.lease_epoch,
        digest=made.digest,
        spec=made.spec,
        ttl_ms=made.ttl_ms,
    )


@pytest.mark.clause("E2.5")
async def test_pings_are_sent_every_15_seconds_and_answered() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(Ping(number=9))
        assert await hub.hear() == Pong(number=9)
        began = asyncio.get_running_loop().time()
        assert await hub.hear() == Ping(number=1)
        assert asyncio.get_running_loop().time() - began == pytest.approx(15, abs=0.1)


@pytest.mark.case("GHA/3862")
@pytest.mark.clause("E2.5")
async def test_a_link_through_a_sleep_of_the_machine_is_given_up_at_once() -> None:
    async with conversing() as hub:
        await hub.sync()
        hub.sleep_s[0] = 600.0
        async with asyncio.timeout(5):
            end = await hub.end
    assert end.slept


@pytest.mark.clause("E2.5")
@pytest.mark.parametrize("said_at_s", [0, 30])
async def test_a_half_open_link_is_noticed_40_seconds_after_the_last_sign_of_life(
    said_at_s: int,
) -> None:
    async with conversing() as hub:
        await hub.sync()
        await asyncio.sleep(said_at_s)  # virtual
        await hub.say(Pong(number=1))
        began = asyncio.get_running_loop().time()
        end = await hub.end
        assert asyncio.get_running_loop().time() - began == pytest.approx(40, abs=0.5)
    assert "silent for 40 s" in end.reason


@pytest.mark.clause("E2.5")
async def test_a_hub_that_does_not_read_is_given_up() -> None:
    async with conversing() as hub:
        await hub.sync()
        hub.device.is_stuck = True
        for number in range(8):
            await asyncio.sleep(10)  # virtual
            if not hub.end.done():
                await hub.say(Pong(number=number))
        end = await hub.end
    assert "does not read" in end.reason


@pytest.mark.clause("E2.4")
async def test_a_hub_that_hangs_up_is_told_with_its_code() -> None:
    async with conversing() as hub:
        await hub.sync()
        await asyncio.sleep(50 - 13)  # virtual
        await hub.socket.close(CloseCode.RESTART)
        end = await hub.end
    assert end.code == CloseCode.RESTART
    assert end.lived_s == pytest.approx(37, abs=1)


async def test_a_link_that_never_was_synced_does_not_count_as_lived() -> None:
    async with conversing() as hub:
        await hub.hear()
        await asyncio.sleep(30)  # virtual
        await hub.socket.close(CloseCode.RESTART)
        end = await hub.end
    assert end.lived_s == 0


@pytest.mark.clause("E2.4")
async def test_the_hubs_wish_for_patience_is_passed_on() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(Problem(code="device.slow_down", retry_after_ms=90_000))
        await hub.say(Problem(code="else"), Ping(number=1))
        await hub.hear()
        await hub.socket.close(CloseCode.SLOW_DOWN)
        end = await hub.end
    assert (end.code, end.retry_after_s) == (CloseCode.SLOW_DOWN, 90)


async def test_input_on_a_channel_that_is_nobodys_is_told() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(Data(kind=Kind.STDIN, channel=3, offset=0, payload=b"x", flags=Flag.END))
        answer = await hub.hear()
    assert isinstance(answer, Problem)
    assert answer.code == "wire.unknown_channel"


async def test_a_channel_that_is_another_commands_ends_the_link() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(exec_of("jb_1", 1), exec_of("jb_2", 1))
        end = await hub.end
    assert end.code == CloseCode.PROTOCOL


@pytest.mark.clause("E3.2")
async def test_a_type_that_the_device_does_not_know_is_answered_and_the_link_goes_on() -> None:
    async with conversing() as hub:
        await hub.sync()
        text = json.dumps({"type": "dance", "seq": hub.session._sent})
        sealed = f"{text}\n{hub.session._mac_out(b'T', text.encode()).hex()}"
        hub.session._sent += 1
        await hub.socket.send(sealed)
        answer = await hub.hear()
        assert isinstance(answer, Problem)
        assert answer.code == "wire.unsupported"
        await hub.say(Ping(number=1))
        assert await hub.hear() == Pong(number=1)


@pytest.mark.clause("E3.1")
async def test_control_frames_overtake_output_and_commands_take_turns() -> None:
    limits = Limits(payload_bytes=1000)
    async with conversing(limits=limits) as hub:
        await hub.sync()
        await hub.say(exec_of("jb_1", 1), exec_of("jb_2", 2))
        await hub.commands.until(lambda: len(hub.commands.starts) == 2)
        assert {type(await hub.hear()) for _ in range(2)} == {StateReport}
        hub.commands.write("jb_1", bytes(100_000))
        hub.commands.write("jb_1", bytes(100_000), Stream.STDERR)
        hub.commands.write("jb_2", bytes(100_000))
        await hub.say(Ping(number=7))
        heard = [await hub.hear() for _ in range(9)]
    assert Pong(number=7) in heard[:3]
    channels = [(item.channel, item.kind) for item in heard if isinstance(item, Data)]
    first, second = channels[:4], channels[4:8]
    assert first == second
    assert sorted(first) == [
        (1, Kind.STDOUT),
        (1, Kind.STDERR),
        (2, Kind.STDOUT),
        (2, Kind.STDOUT),
    ]


@pytest.mark.clause("E3.3")
async def test_a_smaller_credit_is_kept_to() -> None:
    limits = Limits(command_credit_bytes=1500, payload_bytes=1000)
    async with conversing(limits=limits) as hub:
        await hub.sync()
        await hub.say(exec_of())
        assert isinstance(await hub.hear(), StateReport)
        hub.commands.write("jb_1", bytes(5000))
        lengths = []
        for _ in range(2):
            frame = await hub.hear()
            assert isinstance(frame, Data)
            lengths.append(len(frame.payload))
        assert isinstance(await hub.hear(), Ping)  # and no more output
        await hub.say(Ack(command_id="jb_1", stream=Stream.STDOUT, offset=1200))
        frame = await hub.hear()
        assert isinstance(frame, Data)
        assert lengths == [1000, 500]
        assert (frame.offset, len(frame.payload)) == (1500, 1000)
    assert hub.commands.held["jb_1"].acked == {Stream.STDOUT: 1200}


async def test_an_acknowledgement_of_what_was_never_sent_ends_the_link() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(exec_of(), Ack(command_id="jb_1", stream=Stream.STDOUT, offset=1))
        end = await hub.end
    assert end.code == CloseCode.PROTOCOL


async def test_a_command_that_vanished_is_passed_over() -> None:
    async with conversing() as hub:
        await hub.sync(Wanted(command_id="jb_gone", channel=1))
        await hub.say(Ping(number=1))
        assert await hub.hear() == Pong(number=1)


@pytest.mark.clause("E4.4")
async def test_the_last_output_leaves_before_the_end_and_the_end_leaves_once() -> None:
    async with conversing() as hub:
        await hub.sync()
        await hub.say(exec_of())
        assert isinstance(await hub.hear(), StateReport)
        hub.commands.write("jb_1", b"last")
        hub.commands.end("jb_1", 2)
        hub.commands.tell("jb_1")
        data, final = await hub.hear(), await hub.hear()
        hub.commands.tell("jb_1")
        await hub.say(Ping(number=1))
        assert await hub.hear() == Pong(number=1)
        await hub.say(FinalAck(command_id="jb_1"), CancelCommand(command_id="jb_1"))
        await hub.commands.until(lambda: hub.commands.cancelled)
    assert isinstance(data, Data)
    assert data.payload == b"last"
    assert isinstance(final, FinalReport)
    assert hub.commands.forgotten == ["jb_1"]


async def test_workspaces_that_do_not_fit_into_a_frame_are_cut_and_the_link_holds() -> None:
    commands = FakeCommands()
    commands.roots = tuple(Workspace(path=f"/{n}/" + "é" * 200) for n in range(100))
    async with conversing(commands) as hub:
        await hub.hear()
        await hub.say(Sync(commands=()))
        announced = await hub.hear()
    assert isinstance(announced, Workspaces)
    assert 0 < len(announced.workspaces) < 100
    assert announced.workspaces == commands.roots[: len(announced.workspaces)]


@pytest.mark.clause("E5.4")
async def test_what_the_hub_has_is_not_sent_again_and_the_end_is_told_as_it_was() -> None:
    commands = FakeCommands()
    async with conversing(commands) as hub:
        await hub.sync()
        await hub.say(exec_of())
        assert isinstance(await hub.hear(), StateReport)
        commands.write("jb_1", b"abc")
        commands.write("jb_1", b"de", Stream.STDERR)
        commands.end("jb_1")
        first = [await hub.hear() for _ in range(3)][2]
    async with conversing(commands) as hub:
        await hub.sync(Wanted(command_id="jb_1", channel=5, stdout=3, stderr=2))
        again = await hub.hear()
    assert isinstance(first, FinalReport)
    assert again == first
