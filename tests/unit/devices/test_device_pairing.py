"""Pairing over a socket in memory: the device's ``ask`` and ``resume`` against the hub's door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from fixtures.wire_world import CAPS, DEVICE_ID, HOST, HUB_ID, End, World, socket_pair
from upright.core.request import RequestState
from upright.devices.identity import HubIdentity, new_private_key
from upright.devices.pairing import ChangedError, UnknownCodeError
from upright.devices.ports import Pairing
from upright_execd.address import HubAddress
from upright_execd.keys import DeviceKey
from upright_execd.link import SlowDownError, expect, next_message
from upright_execd.pairing import Asked, PairParts, Shown, ask, resume
from upright_execd.socket import GoneError
from upright_wire.errors import WireError
from upright_wire.frames import (
    CloseCode,
    Facts,
    PairResult,
    PairVerdict,
    Ping,
    Pong,
    Side,
)
from upright_wire.pairing import draw_code
from upright_wire.session import Session

pytestmark = pytest.mark.looptime
FACTS = Facts(hostname="box", system="Linux", user="ann", version="0.1.0")


def parts(world: World) -> PairParts:
    return PairParts(
        address=HubAddress(url=f"wss://{HOST}/v1/device", host=HOST),
        key=world.key,
        caps=CAPS,
        facts=FACTS,
        times=world.device_times(),
        uniform=lambda low, _: low,
        show=lambda _: None,
    )


@asynccontextmanager
async def socket_to(world: World, remote: str = "192.0.2.1") -> AsyncIterator[tuple[End, Session]]:
    """Open a socket to the hub; it is cut when the block ends."""
    hub, device = socket_pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote=remote))
        try:
            yield device, Session(Side.DEVICE)
        finally:
            device.abort()


async def asked_of(world: World) -> tuple[Asked, Shown]:
    """Make a request and lose the socket."""
    async with socket_to(world) as (socket, session):
        return await ask(socket, session, parts(world))


def the_row(world: World) -> Pairing:
    (row,) = (row for row in world.store.rows.values() if row.state is RequestState.ASKED)
    return row


@pytest.mark.clause("E1.1", "E1.2")
async def test_a_device_is_paired_by_the_code_that_it_shows() -> None:
    world = World()
    world.roster.devices.clear()
    async with socket_to(world) as (socket, session):
        asked, shown = await ask(socket, session, parts(world))
        request = await world.pairings.look(shown.code.lower())
        assert (request.digits, request.facts, request.caps) == (shown.digits, FACTS, CAPS)
        assert (request.host, request.remote) == (HOST, "192.0.2.1")
        approval = await world.pairings.approve(request, by="ann", granted=("exec", "root"))
        result = await expect(socket, session, PairResult)
    assert result.verdict is PairVerdict.APPROVED
    assert result.device_id == approval.device_id
    assert result.caps == approval.granted == ("exec",)
    assert world.roster.devices[approval.device_id].public_key == world.key.public
    assert (asked.hub_id, asked.hub_key) == (HUB_ID, world.identity.public_key)


async def test_a_paired_device_gets_in() -> None:
    world = World()
    world.roster.devices.clear()
    async with socket_to(world) as (socket, session):
        _, shown = await ask(socket, session, parts(world))
        approval = await world.pairings.approve(await world.pairings.look(shown.code), by="ann")
        await expect(socket, session, PairResult)
    world.roster.devices[DEVICE_ID] = replace(
        world.roster.devices[approval.device_id], id=DEVICE_ID
    )
    async with world.linked():
        await world.dispatcher.until(lambda: world.dispatcher.inventories)


async def test_pings_are_answered_while_a_person_thinks() -> None:
    world = World()
    async with socket_to(world) as (socket, session):
        await ask(socket, session, parts(world))
        await socket.send(session.send(Ping(number=5)))
        async with asyncio.timeout(5):
            assert session.receive(str(await socket.receive())) == Pong(number=5)


@pytest.mark.clause("E1.2")
async def test_a_no_is_told() -> None:
    world = World()
    async with socket_to(world) as (socket, session):
        await ask(socket, session, parts(world))
        await world.pairings.deny(the_row(world).id, by="ann")
        result = await expect(socket, session, PairResult)
        with pytest.raises(GoneError):
            await next_message(socket, session)
    assert (result.verdict, result.device_id) == (PairVerdict.DENIED, "")
    assert socket.closed_with == CloseCode.NORMAL


@pytest.mark.clause("E1.3")
async def test_a_request_expires_after_ten_minutes_and_can_not_be_approved_then() -> None:
    world = World()
    async with socket_to(world) as (socket, session):
        _, shown = await ask(socket, session, parts(world))
        request = the_row(world)
        began = world.clock.monotonic()
        for number in range(45):
            await asyncio.sleep(13)  # virtual
            await socket.send(session.send(Ping(number=number)))
        result = await expect(socket, session, PairResult)
        assert world.clock.monotonic() - began < 602
    assert result.verdict is PairVerdict.EXPIRED
    with pytest.raises(ChangedError):
        await world.pairings.approve(request, by="ann")
    with pytest.raises(UnknownCodeError):
        await world.pairings.look(shown.code)


async def test_a_device_that_falls_silent_while_it_waits_is_let_go() -> None:
    world = World()
    async with socket_to(world) as (socket, session):
        await ask(socket, session, parts(world))
        await asyncio.sleep(42)  # virtual
        assert socket.is_gone


# ------------------------------------------------------------------ coming back
async def test_a_device_comes_back_to_its_request_on_a_new_socket() -> None:
    world = World()
    asked, shown = await asked_of(world)
    async with socket_to(world) as (socket, session):
        assert await resume(socket, session, parts(world), asked) is None
        await world.pairings.approve(await world.pairings.look(shown.code), by="ann")
        result = await expect(socket, session, PairResult)
    assert result.verdict is PairVerdict.APPROVED
    assert len(world.store.rows) == 1


async def test_a_decision_that_was_made_meanwhile_is_told_at_once() -> None:
    world = World()
    asked, shown = await asked_of(world)
    await world.pairings.approve(await world.pairings.look(shown.code), by="ann")
    async with socket_to(world) as (socket, session):
        result = await resume(socket, session, parts(world), asked)
    assert result is not None
    assert result.verdict is PairVerdict.APPROVED


@pytest.mark.clause("E1.3")
async def test_nobody_else_comes_back_to_a_request() -> None:
    world, thief = World(), World(key=DeviceKey(new_private_key()))
    asked, _ = await asked_of(world)
    async with socket_to(world) as (socket, session):
        with pytest.raises(GoneError):
            await resume(socket, session, parts(thief), asked)
    assert socket.closed_with == CloseCode.PROTOCOL


@pytest.mark.clause("E1.3")
async def test_asking_again_withdraws_the_older_request_of_the_same_key() -> None:
    world = World()
    _, first = await asked_of(world)
    _, second = await asked_of(world)
    assert the_row(world).code == second.code.replace("-", "")
    with pytest.raises(UnknownCodeError):
        await world.pairings.look(first.code)


# ------------------------------------------------------------------ attacks
@pytest.mark.clause("E1.3")
async def test_five_wrong_guesses_kill_a_request() -> None:
    world = World()
    _, shown = await asked_of(world)
    wrong = "BBBB-BBBB" if shown.code != "BBBB-BBBB" else "CCCC-CCCC"
    for _ in range(5):
        with pytest.raises(UnknownCodeError):
            await world.pairings.look(wrong)
    with pytest.raises(UnknownCodeError):
        await world.pairings.look(shown.code)
    assert not await world.pairings.waiting()


@pytest.mark.case("OC/16458")
@pytest.mark.clause("E1.3")
async def test_a_thousand_guesses_find_nothing_and_end_the_request() -> None:
    world = World()
    _, shown = await asked_of(world)
    guesses = (f"{draw_code(world.randomness.below)}" for _ in range(1000))
    for guess in guesses:
        if guess != shown.code:
            with pytest.raises(UnknownCodeError):
                await world.pairings.look(guess)
    (row,) = world.store.rows.values()
    assert row.state is RequestState.EXPIRED
    assert not [device for device in world.roster.devices if device != DEVICE_ID]


@pytest.mark.case("GHSA-7h7g-x2px-94hj")
@pytest.mark.clause("E1.3")
async def test_a_code_pairs_once() -> None:
    world = World()
    _, shown = await asked_of(world)
    request = await world.pairings.look(shown.code)
    await world.pairings.approve(request, by="ann")
    with pytest.raises(ChangedError):
        await world.pairings.approve(request, by="ann")
    with pytest.raises(UnknownCodeError):
        await world.pairings.look(shown.code)


@pytest.mark.clause("E1.3")
async def test_an_approval_of_another_request_than_was_shown_fails() -> None:
    world = World()
    _, shown = await asked_of(world)
    request = await world.pairings.look(shown.code)
    with pytest.raises(ChangedError):
        await world.pairings.approve(replace(request, bound_hash="0" * 64), by="ann")
    assert not [row for row in world.roster.devices if row != DEVICE_ID]


@pytest.mark.clause("E1.3")
async def test_an_address_that_asks_too_often_is_put_off() -> None:
    world = World()
    for _ in range(10):
        await asked_of(world)
    async with socket_to(world) as (socket, session):
        with pytest.raises((GoneError, SlowDownError)):
            await ask(socket, session, parts(world))
    assert socket.closed_with == CloseCode.SLOW_DOWN
    async with socket_to(world, remote="192.0.2.2") as (socket, session):
        await ask(socket, session, parts(world))


@pytest.mark.clause("E1.1")
async def test_a_device_that_dialled_another_name_is_not_even_shown() -> None:
    world = World(hosts=frozenset({"real.example.org"}))
    async with socket_to(world) as (socket, session):
        with pytest.raises(GoneError):
            await ask(socket, session, parts(world))
    assert socket.closed_with == CloseCode.PROTOCOL
    assert not world.store.rows


@pytest.mark.case("Storm-2372")
@pytest.mark.clause("E1.1")
async def test_a_man_in_the_middle_of_a_pairing_is_seen_in_the_digits() -> None:
    victim, hub = World(), World()
    mallory_hub = World(identity=HubIdentity(HUB_ID, new_private_key()))
    mallory_device = World(key=DeviceKey(new_private_key()))
    async with socket_to(mallory_hub) as (to_victim, session):
        _, on_the_laptop = await ask(to_victim, session, parts(victim))
    async with socket_to(hub) as (to_hub, session):
        _, shown = await ask(to_hub, session, parts(mallory_device))
    on_the_hub = await hub.pairings.look(shown.code)
    assert on_the_laptop.digits != on_the_hub.digits


@pytest.mark.clause("E1.1", "E1.2")
async def test_a_middle_that_relays_and_swaps_the_hubs_key_is_noticed_at_once() -> None:
    world = World()
    mallory = HubIdentity(HUB_ID, new_private_key())

    def swap(frame: str | bytes) -> str | bytes:
        return str(frame).replace(world.identity.public_key.hex(), mallory.public_key.hex())

    hub, device = socket_pair()
    hub.tamper = swap
    async with asyncio.TaskGroup() as group:
        group.create_task(world.door.serve(hub, remote="192.0.2.1"))
        with pytest.raises(WireError):
            await ask(device, Session(Side.DEVICE), parts(world))
        device.abort()
    assert not world.store.rows
