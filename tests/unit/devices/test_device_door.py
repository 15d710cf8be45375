"""The door: who gets in, who does not, and that nothing forged ever counts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable

import pytest

from fixtures.wire_world import DEVICE_ID, Tamper, World, order, socket_pair
from upright.devices.door import LINES_PER_MINUTE
from upright.devices.identity import HubIdentity, new_private_key
from upright.devices.transport import is_from_a_browser
from upright_execd.keys import DeviceKey
from upright_execd.link import SlowDownError, expect
from upright_execd.socket import GoneError
from upright_wire.frames import MAX_FIRST_BYTES, Challenge, CloseCode, Hello, Side
from upright_wire.handshake import key_id
from upright_wire.session import Session

pytestmark = pytest.mark.looptime


def altered(kind: str, field: str, change: Callable[[object], object]) -> Tamper:
    """Return a man in the middle who changes one field of one kind of message."""

    def tamper(frame: str | bytes) -> str | bytes:
        if not isinstance(frame, str) or "\n" in frame or f'"type":"{kind}"' not in frame:
            return frame
        value = json.loads(frame)
        value[field] = change(value[field])
        if value[field] is None:
            del value[field]
        return json.dumps(value, separators=(",", ":"))

    return tamper


def other(value: object) -> object:
    """Return a value of the same shape that is another."""
    match value:
        case str() if len(value) >= 16:
            return ("1" if value[0] == "0" else "0") + value[1:]
        case str():
            return value + "x"
        case int():
            return value + 1
        case [int(), int()]:
            return [0, 1]
        case list():
            return [*value, "admin"]
        case dict():
            return {name: other(inner) for name, inner in value.items()}
        case _:
            raise TypeError(value)


def dropped(_: object) -> object:
    return None


HELLO = ["device_id", "host", "nonce", "eph", "boot_id", "os_boot_id", "caps", "proto", "sig"]
CHALLENGE = ["hub_id", "hub_key_id", "nonce", "eph"]
WELCOME = ["link", "proto", "caps", "limits", "sig"]


@pytest.mark.case("CVE-2026-28472")
@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("change", [other, dropped], ids=["altered", "dropped"])
@pytest.mark.parametrize("field", HELLO)
async def test_a_hello_with_one_field_altered_makes_no_session(
    field: str, change: Callable[[object], object]
) -> None:
    world = World()
    async with world.linked(device_says=altered("hello", field, change)) as sockets:
        end = await sockets.daemon
        await sockets.door
    assert end.code in {CloseCode.PROTOCOL, CloseCode.NOT_APPROVED}
    assert not world.roster.sightings
    assert not world.dispatcher.inventories


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("field", CHALLENGE)
async def test_a_challenge_with_one_field_altered_makes_no_session(field: str) -> None:
    world = World()
    async with world.linked(hub_says=altered("challenge", field, other)) as sockets:
        end = await sockets.daemon
        await sockets.door
    assert end.code == CloseCode.PROTOCOL
    assert not world.dispatcher.inventories


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("field", WELCOME)
async def test_a_welcome_with_one_field_altered_is_not_believed(field: str) -> None:
    world = World()
    async with world.linked(hub_says=altered("welcome", field, other)) as sockets:
        end = await sockets.daemon
    assert end.reason == "wire.auth"
    assert not world.dispatcher.inventories


@pytest.mark.clause("E2.2", "E2.4")
@pytest.mark.parametrize("flipped", [0, 20, -40, -1], ids=["start", "inside", "end", "mac"])
async def test_a_tampered_command_is_closed_with_4004_and_runs_nothing(flipped: int) -> None:
    def tamper(frame: str | bytes) -> str | bytes:
        if not isinstance(frame, str) or '"type":"exec"' not in frame:
            return frame
        raw = bytearray(frame.encode())
        raw[flipped] ^= 1
        return raw.decode()

    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked(hub_says=tamper) as sockets:
        end = await sockets.daemon
    assert end.code == CloseCode.PROTOCOL
    assert not world.commands.starts


@pytest.mark.clause("E2.2", "E2.4")
async def test_a_tampered_piece_of_output_is_closed_with_4004_and_not_stored() -> None:
    def tamper(frame: str | bytes) -> str | bytes:
        if isinstance(frame, bytes):
            return frame[:16] + bytes([frame[16] ^ 1]) + frame[17:]
        return frame

    world = World()
    world.dispatcher.orders = [order()]
    async with world.linked(device_says=tamper) as sockets:
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", b"rm")
        end = await sockets.daemon
    assert end.code == CloseCode.PROTOCOL
    assert not any(world.dispatcher.output.values())


@pytest.mark.clause("E2.2")
@pytest.mark.parametrize("copies", [0, 2], ids=["swallowed", "doubled"])
async def test_a_frame_that_is_swallowed_or_doubled_ends_the_link(copies: int) -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        peer = sockets.device

        def tamper(frame: str | bytes) -> None:
            for _ in range(copies):
                peer.inbox.put_nowait(frame)

        sockets.hub.tamper = tamper
        assert world.dispatcher.link is not None
        world.dispatcher.link.send_cancel("jb_1")
        await asyncio.sleep(0.1)
        sockets.hub.tamper = None
        if not sockets.daemon.done():
            world.dispatcher.link.send_cancel("jb_2")
        end = await sockets.daemon
    assert end.code == CloseCode.PROTOCOL
    assert "jb_2" not in world.commands.cancelled


@pytest.mark.case("CVE-2026-25253")
@pytest.mark.clause("E2.2")
async def test_a_hello_recorded_at_one_hub_is_worth_nothing_at_another() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        recorded = next(frame for frame in sockets.device.sent if '"hello"' in str(frame))
    other_hub = World(identity=HubIdentity("hb_2", new_private_key()))
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(other_hub.door.serve(hub, remote="192.0.2.1"))
        await device.receive()
        await device.send(recorded)
    assert device.closed_with == CloseCode.PROTOCOL
    assert not other_hub.roster.sightings


@pytest.mark.clause("E2.2")
async def test_a_hello_recorded_on_one_socket_is_worth_nothing_on_the_next() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        recorded = next(frame for frame in sockets.device.sent if '"hello"' in str(frame))
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="192.0.2.1"))
        await device.receive()
        await device.send(recorded)
    assert device.closed_with == CloseCode.PROTOCOL


@pytest.mark.clause("E2.2")
async def test_a_device_with_another_key_does_not_get_in_under_a_known_name() -> None:
    world = World(key=DeviceKey(new_private_key()))
    known = World()
    world.roster.devices = known.roster.devices
    async with world.linked() as sockets:
        end = await sockets.daemon
    assert end.code == CloseCode.PROTOCOL


@pytest.mark.clause("E1.2", "E2.2")
async def test_a_device_does_not_answer_a_hub_that_is_not_the_pinned_one() -> None:
    world, stranger = World(), World(identity=HubIdentity("hb_1", new_private_key()))
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(stranger.door.serve(hub, remote="192.0.2.1"))
        end = await world.device(device)
    assert end.reason == "wire.auth"
    assert not device.sent


@pytest.mark.clause("E2.2")
async def test_a_host_that_is_not_this_hubs_is_refused() -> None:
    world = World(hosts=frozenset({"real.example.org"}))
    async with world.linked() as sockets:
        end = await sockets.daemon
    assert end.code == CloseCode.PROTOCOL
    assert not world.roster.sightings


@pytest.mark.case("GHSA-rqpp-rjj8-7wv8")
@pytest.mark.clause("E1.4")
async def test_wider_capabilities_wait_for_approval_and_the_old_set_holds() -> None:
    world = World()
    device = world.roster.devices[DEVICE_ID]
    world.roster.devices[DEVICE_ID] = type(device)(
        id=device.id, public_key=device.public_key, state=device.state, caps=("exec",)
    )
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        welcome = next(frame for frame in sockets.hub.sent if '"welcome"' in str(frame))
    assert json.loads(welcome)["caps"] == ["exec"]
    assert world.roster.sightings[0].wider_caps == ("stdin",)


# ------------------------------------------------------------------ bounds
@pytest.mark.clause("E2.1")
async def test_a_device_that_says_nothing_is_cut_after_10_seconds() -> None:
    world = World()
    hub, device = socket_pair()
    began = world.clock.monotonic()
    await world.door.serve(hub, remote="192.0.2.1")
    assert world.clock.monotonic() - began == pytest.approx(10, abs=0.1)
    assert device.is_gone


@pytest.mark.clause("E2.1")
@pytest.mark.parametrize(
    "first",
    ['{"type":"ping","seq":0,"number":1}', "x", b"x", "x" * (MAX_FIRST_BYTES + 1)],
    ids=["ping", "no JSON", "binary", "too large"],
)
async def test_a_first_frame_that_is_no_hello_is_refused(first: str | bytes) -> None:
    world = World()
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="192.0.2.1"))
        await device.receive()
        await device.send(first)
    assert device.closed_with == CloseCode.PROTOCOL


@pytest.mark.clause("E2.1", "E2.4")
async def test_an_address_that_fails_too_often_is_asked_for_patience() -> None:
    world = World()
    for _ in range(20):
        hub, device = socket_pair()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.door.serve(hub, remote="192.0.2.1"))
            await device.receive()
            await device.send("x")
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="192.0.2.1"))
        session = Session(Side.DEVICE)
        await expect(device, session, Challenge)
        with pytest.raises(SlowDownError) as caught:
            await expect(device, session, Hello)
    assert device.closed_with == CloseCode.SLOW_DOWN
    assert 0 < caught.value.retry_after_s <= 60
    async with world.linked() as sockets:  # the fixture's device comes from there, too
        end = await sockets.daemon
    assert end.code == CloseCode.SLOW_DOWN


@pytest.mark.clause("E2.4")
async def test_a_flood_of_refused_calls_is_put_off_and_not_all_written_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "upright.devices.door")
    world, codes = World(), Counter[int | None]()
    for _ in range(100):
        hub, device = socket_pair()
        async with asyncio.TaskGroup() as group:
            group.create_task(world.door.serve(hub, remote="192.0.2.1"))
            await device.receive()
            with contextlib.suppress(GoneError):
                await device.send("x")
        codes[device.closed_with] += 1
    assert codes == {CloseCode.PROTOCOL: 20, CloseCode.SLOW_DOWN: 80}
    assert len(caplog.records) == LINES_PER_MINUTE
    async with world.linked():
        pass
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="198.51.100.7"))  # others are served
        await device.receive()
        await device.send("x")
    assert device.closed_with == CloseCode.PROTOCOL


@pytest.mark.clause("E2.1")
async def test_only_who_has_proved_who_it_is_counts_as_admitted() -> None:
    world = World()
    async with world.linked() as sockets:
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        assert sockets.hub.is_admitted
    async with world.linked(device_says=altered("hello", "sig", other)) as sockets:
        await sockets.daemon
        assert not sockets.hub.is_admitted


@pytest.mark.clause("E2.1")
def test_a_request_with_an_origin_is_a_browsers() -> None:
    assert is_from_a_browser(["Host", "origin"])
    assert not is_from_a_browser(["Host", "Sec-WebSocket-Protocol"])


def test_the_hubs_key_is_not_printed() -> None:
    private = new_private_key()
    identity = HubIdentity("hb_1", private)
    assert private.hex() not in repr(identity)
    assert identity.key_id == key_id(identity.public_key)
