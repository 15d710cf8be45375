"""Bad networks: late, slow, lossy, cut when idle, half-open; what arrives is whole and ran once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from fixtures.shaper import Shaper
from fixtures.wire_server import Daemon, Server, is_as_long, is_online
from fixtures.wire_world import World, order
from upright.devices.link import LinkTimes
from upright_wire.command import Stream

WRITTEN = b"".join(hashlib.sha256(bytes([n % 251])).digest() * 1024 for n in range(64))  # 2 MiB
BEATS = LinkTimes(ping_s=0.15, dead_s=0.8)


@asynccontextmanager
async def behind(shaper: Shaper, world: World) -> AsyncIterator[Server]:
    """Run a hub whose device dials through *shaper*."""
    server = Server(world=world)
    async with server.running():
        shaper.target = server.port
        async with shaper.running():
            server.dialled = shaper.port
            server.hosts.add(server.address.host)
            yield server


@pytest.mark.clause("E3.3", "E5.4")
async def test_a_late_slow_and_lossy_link_costs_time_and_no_byte() -> None:
    world = World(hosts=set())
    world.dispatcher.orders = [order()]
    shaper = Shaper(0, delay_s=0.025, bytes_per_s=5e6, late_every=100)
    began = asyncio.get_running_loop().time()
    async with behind(shaper, world) as server, Daemon(server).running():
        await world.commands.until(lambda: world.commands.starts)
        world.commands.write("jb_1", WRITTEN)
        world.commands.end("jb_1")
        await world.commands.until(lambda: world.commands.forgotten, within_s=20)
        assert len(server.transports) == 1
    stored = world.dispatcher.output["jb_1", Stream.STDOUT]
    assert hashlib.sha256(stored).digest() == hashlib.sha256(WRITTEN).digest()
    assert world.commands.starts == ["jb_1"]
    assert asyncio.get_running_loop().time() - began > len(WRITTEN) / 5e6


@pytest.mark.case("NO/14595")
@pytest.mark.clause("E2.5")
async def test_a_proxy_that_cuts_idle_links_never_sees_one() -> None:
    world = World(hosts=set(), times=BEATS)
    shaper = Shaper(0, idle_s=0.6)
    async with behind(shaper, world) as server, Daemon(server).running():
        await world.dispatcher.until(lambda: world.dispatcher.inventories)
        passed = shaper.chunks
        await shaper.until(lambda: shaper.chunks >= passed + 48)  # three times the idle cut
        assert (shaper.cuts, len(server.transports)) == (0, 1)


@pytest.mark.case("OC/572")
@pytest.mark.clause("E2.5")
async def test_a_half_open_link_is_noticed_by_both_ends_and_the_output_goes_on() -> None:
    world = World(hosts=set(), times=BEATS)
    world.dispatcher.orders = [order()]
    shaper = Shaper(0)
    async with behind(shaper, world) as server:
        daemon = Daemon(server)
        async with daemon.running():
            await world.commands.until(lambda: world.commands.starts)
            world.commands.write("jb_1", WRITTEN[:1000])
            stored = world.dispatcher.output["jb_1", Stream.STDOUT]
            await world.dispatcher.until(partial(is_as_long, stored, 1000))
            shaper.freeze()
            world.commands.write("jb_1", WRITTEN[1000:])
            world.commands.end("jb_1")
            await world.commands.until(lambda: world.commands.forgotten, within_s=10)
            await daemon.until(is_online)
            assert len(server.transports) == 2
    assert bytes(stored) == WRITTEN
    assert world.commands.starts == ["jb_1"]
