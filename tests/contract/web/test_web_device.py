"""The device path: only execd comes in, and the socket is handed over as it is."""

from __future__ import annotations

import asyncio
import resource
from dataclasses import replace

import pytest
from aiohttp import WSMsgType, WSServerHandshakeError

from fixtures.web_hub import Behind, Client, GoneError, serving
from upright.web.device import SUBPROTOCOL
from upright.web.parts import WebLimits
from upright.web.socket import DeviceSocket


async def test_frames_pass_both_ways_as_they_are(client: Client) -> None:
    async with client.session.ws_connect(
        f"{client.url}/v1/device", protocols=(SUBPROTOCOL,)
    ) as socket:
        await socket.send_str("{}")
        assert (await socket.receive()).data == "{}"
        await socket.send_bytes(b"\x00\xff")
        assert (await socket.receive()).data == b"\x00\xff"
        assert socket.protocol == SUBPROTOCOL
    assert client.behind.asked == [("device", "127.0.0.1")]


@pytest.mark.clause("E2.1")
@pytest.mark.parametrize(
    ("headers", "protocols", "status"),
    [
        ({"Origin": "http://localhost"}, (SUBPROTOCOL,), 403),
        ({}, ("other",), 400),
        ({}, (), 400),
        ({"Host": "evil.example"}, (SUBPROTOCOL,), 421),
    ],
)
async def test_whoever_is_not_execd_is_refused(
    client: Client, headers: dict[str, str], protocols: tuple[str, ...], status: int
) -> None:
    with pytest.raises(WSServerHandshakeError) as caught:
        await client.session.ws_connect(
            f"{client.url}/v1/device", protocols=protocols, headers=headers
        )
    assert caught.value.status == status
    assert not client.behind.asked


@pytest.mark.clause("E2.1")
async def test_a_frame_over_the_cap_ends_the_socket(client: Client) -> None:
    async with client.session.ws_connect(
        f"{client.url}/v1/device", protocols=(SUBPROTOCOL,)
    ) as socket:
        await socket.send_bytes(b"x" * (70 * 1024 + 1))
        message = await socket.receive()
        assert message.type is WSMsgType.CLOSE
        assert message.data == 1009


@pytest.mark.clause("E2.1", "E2.4")
async def test_one_socket_too_many_is_told_to_wait(behind: Behind) -> None:
    parts = replace(behind.parts(), limits=WebLimits(max_half_open_per_address=1))
    async with serving(parts) as (session, url):
        first = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        with pytest.raises(WSServerHandshakeError) as caught:
            await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        await first.send_str("still served")
        assert (await first.receive()).data == "still served"
        await first.close()
    assert caught.value.status == 429
    await behind.store.close()


async def test_who_is_known_takes_no_place_from_the_others(behind: Behind) -> None:
    async def admit(socket: DeviceSocket) -> None:
        await socket.receive()
        socket.admitted()
        await socket.send("in")
        await socket.receive()

    parts = replace(behind.parts(), device=admit, limits=WebLimits(max_half_open_per_address=1))
    async with serving(parts) as (session, url):
        sockets = []
        for _ in range(3):
            socket = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
            await socket.send_str("hello")
            assert (await socket.receive()).data == "in"
            sockets.append(socket)
        for socket in sockets:
            await socket.send_str("bye")
            await socket.close()
    await behind.store.close()


@pytest.mark.case("GHSA-jv4g-m82p-2j93")
@pytest.mark.clause("E2.1")
async def test_five_hundred_half_open_sockets_cost_little_and_disturb_nobody(
    behind: Behind,
) -> None:
    limits = WebLimits()
    async with serving(replace(behind.parts(), limits=limits)) as (session, url):
        first = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        before = resident_bytes()
        held, refused = [first], 0
        for _ in range(500):
            try:
                held.append(await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,)))
            except WSServerHandshakeError as error:
                refused += error.status == 429
        assert len(held) == limits.max_half_open_per_address
        assert refused == 501 - len(held)
        assert resident_bytes() - before < 20 * 1024 * 1024
        await first.send_str("still served")
        assert (await first.receive()).data == "still served"
        for socket in held:
            await socket.close()
        again = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        await again.close()
    await behind.store.close()


def resident_bytes() -> int:
    """Return the most memory that this process has had, both ends of the sockets in it."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.clause("E2.4")
async def test_the_hub_closes_with_its_own_code(behind: Behind) -> None:
    async def refuse(socket: DeviceSocket) -> None:
        await socket.close(4003, "not approved yet")

    async with serving(replace(behind.parts(), device=refuse)) as (session, url):
        socket = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        assert (await socket.receive()).data == 4003
        await socket.close()
    await behind.store.close()


async def test_the_end_of_the_socket_is_the_error_that_devices_know(behind: Behind) -> None:
    ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def watch(socket: DeviceSocket) -> None:
        try:
            await socket.receive()
        except GoneError as error:
            ended.set_result(error)

    async with serving(replace(behind.parts(), device=watch)) as (session, url):
        async with session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,)) as socket:
            await socket.close(code=4008)
        async with asyncio.timeout(5):
            error = await ended
    assert isinstance(error, GoneError)
    assert error.code == 4008
    await behind.store.close()


async def test_an_end_of_the_hub_cuts_open_sockets(behind: Behind) -> None:
    async with asyncio.timeout(5), serving(behind.parts()) as (session, url):
        socket = await session.ws_connect(f"{url}/v1/device", protocols=(SUBPROTOCOL,))
        await socket.send_str("served")
        await socket.receive()
        # leaving the block ends the hub
    assert (await socket.receive()).type in {WSMsgType.CLOSED, WSMsgType.ERROR}
    await socket.close()
    await behind.store.close()
