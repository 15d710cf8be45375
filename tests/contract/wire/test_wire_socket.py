"""The daemon's link and pairing over real sockets, against the hub's door behind aiohttp."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
from aiohttp import web

from fixtures.answering import answered_by
from fixtures.eventually import eventually
from fixtures.wire_server import QUICK, Daemon, Server, a_server, is_as_long, is_online
from fixtures.wire_world import CAPS, DEVICE_ID, HUB_ID, order
from upright.web.socket import DeviceSocket
from upright_execd.link import LinkState
from upright_execd.pairing import PairingError, PairParts, Shown, pair
from upright_wire.command import Stream
from upright_wire.frames import SUBPROTOCOL, CloseCode, Facts


@pytest.mark.clause("E2.1")
async def test_a_command_runs_over_a_real_socket_without_any_credential_in_the_request() -> None:
    server = a_server()
    world = server.world
    world.dispatcher.orders = [order(stdin=b"input")]
    world.dispatcher.stdin = {"jb_1": b"input"}
    async with server.running(), Daemon(server).running():
        await world.commands.until(
            lambda: world.commands.starts and world.commands.held["jb_1"].has_all_stdin
        )
        world.commands.write("jb_1", b"output")
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten)
    assert world.dispatcher.output["jb_1", Stream.STDOUT] == b"output"
    (request,) = server.requests
    assert request.path_qs == "/v1/device"
    assert not {"Origin", "Authorization", "Cookie"} & set(request.headers)
    assert "Sec-WebSocket-Extensions" not in request.headers


@pytest.mark.clause("E7.3")
async def test_ten_megabytes_arrive_whole_though_the_network_is_cut_again_and_again() -> None:
    server = a_server()
    world = server.world
    world.dispatcher.orders = [order()]
    written = b"".join(hashlib.sha256(bytes([n % 251])).digest() * 1024 for n in range(320))
    async with server.running(), Daemon(server).running():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", written)
        world.commands.end("jb_1")
        stored = world.dispatcher.output["jb_1", Stream.STDOUT]
        for megabyte in range(1, 6):
            await world.dispatcher.until(partial(is_as_long, stored, megabyte << 20))
            server.transports[-1].abort()
        await world.commands.until(lambda: world.commands.forgotten)
    assert hashlib.sha256(stored).digest() == hashlib.sha256(written).digest()
    assert world.commands.starts == ["jb_1"]
    assert len(server.transports) >= 5


@pytest.mark.case("OC/69800")
@pytest.mark.clause("E2.5")
async def test_a_hub_that_goes_and_comes_back_is_found_again() -> None:
    server = a_server()
    async with server.running():
        daemon = Daemon(server)
        async with daemon.running():
            await daemon.until(is_online)
            server.world.links.close_all()
            down = await daemon.until(lambda status: not is_online(status))
            await daemon.until(is_online)
    assert "1012" in next(status.reason for status in daemon.seen if status.reason)
    assert down.state is not LinkState.REVOKED


@pytest.mark.clause("E2.5")
async def test_a_port_that_nobody_listens_on_is_said_and_tried_again() -> None:
    server = a_server()
    async with server.running():
        pass
    daemon = Daemon(server)
    async with daemon.running():
        status = await daemon.until(lambda status: bool(status.reason))
        assert server.address.host in status.reason
        async with server.running():
            await daemon.until(is_online)


@pytest.mark.clause("E1.5", "E2.4")
async def test_a_revoked_device_stops_dialling() -> None:
    server = a_server()
    async with server.running():
        daemon = Daemon(server)
        async with daemon.running() as running:
            await daemon.until(is_online)
            server.world.roster.revoke(DEVICE_ID)
            server.world.links.revoke(DEVICE_ID)
            end = await running
    assert end.code == CloseCode.REVOKED
    assert daemon.link.status.state is LinkState.REVOKED


@asynccontextmanager
async def answering(handler: Callable[[web.Request], object]) -> AsyncIterator[Server]:
    """Be something else than a hub on a port."""
    server = a_server()

    async def answer(request: web.Request) -> web.StreamResponse:
        server.requests.append(request)
        found = handler(request)
        assert isinstance(found, web.StreamResponse)
        if isinstance(found, web.WebSocketResponse):
            await found.prepare(request)
        return found

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


@pytest.mark.case("BK/4271")
@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (lambda _: web.Response(status=404), "404"),
        (lambda _: web.Response(status=401), "401"),
        (lambda _: web.Response(status=302, headers={"Location": "/elsewhere"}), "302"),
        (lambda _: web.WebSocketResponse(), SUBPROTOCOL),
    ],
    ids=["not found", "unauthorized", "redirect", "another protocol"],
)
async def test_what_is_no_hub_is_said_and_never_followed(
    handler: Callable[[web.Request], object], said: str
) -> None:
    async with answering(handler) as server:
        daemon = Daemon(server)
        async with daemon.running():
            status = await daemon.until(lambda status: bool(status.reason))
    assert said in status.reason
    assert {request.path for request in server.requests} == {"/v1/device"}


async def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    async def hold(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with answered_by(hold) as port:
        server = a_server()
        server.port = port
        daemon = Daemon(server)
        async with daemon.running():
            status = await daemon.until(lambda status: bool(status.reason))
    assert "does not answer" in status.reason


# ------------------------------------------------------------------ pairing
def pair_parts(server: Server, show: Callable[[Shown], None]) -> PairParts:
    world = server.world
    world.intervals = QUICK
    return PairParts(
        address=server.address,
        key=world.key,
        caps=CAPS,
        facts=Facts(hostname="box", system="Linux", user="ann", version="0.1.0"),
        times=world.device_times(),
        uniform=lambda low, high: low,
        show=show,
    )


@pytest.mark.parametrize("cuts", [0, 2])
async def test_a_machine_is_paired_also_when_the_socket_breaks_meanwhile(cuts: int) -> None:
    server = a_server()
    world, shown = server.world, asyncio.Queue[Shown]()
    world.roster.devices.clear()
    async with server.running(), asyncio.TaskGroup() as group:
        task = group.create_task(pair(pair_parts(server, shown.put_nowait)))
        seen = await shown.get()
        for _ in range(cuts):
            count = len(server.transports)
            server.transports[-1].abort()
            await eventually(partial(has_more_than, server.transports, count))
        request = await world.pairings.look(seen.code)
        assert request.digits == seen.digits
        approval = await world.pairings.approve(request, by="ann")
        hub = await task
    assert shown.empty()
    assert (hub.hub_id, hub.device_id) == (HUB_ID, approval.device_id)
    assert hub.hub_key == world.identity.public_key
    assert (hub.url, hub.host) == (server.address.url, server.address.host)


async def test_a_denied_machine_is_told_so() -> None:
    server = a_server()
    world, shown = server.world, asyncio.Queue[Shown]()
    async with server.running(), asyncio.TaskGroup() as group:
        task = group.create_task(outcome(pair_parts(server, shown.put_nowait)))
        request = await world.pairings.look((await shown.get()).code)
        await world.pairings.deny(request.id, by="ann")
        error = await task
    assert "denied" in str(error)


async def test_a_hub_that_can_not_be_reached_ends_the_pairing_at_once() -> None:
    server = a_server()
    async with server.running():
        pass
    error = await outcome(pair_parts(server, lambda _: None))
    assert server.address.host in str(error)


def has_more_than(items: list[DeviceSocket], count: int) -> bool:
    return len(items) > count


async def outcome(parts: PairParts) -> PairingError:
    with pytest.raises(PairingError) as caught:
        await pair(parts)
    return caught.value
