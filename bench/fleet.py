"""Fleet: many idle devices in one process; each speaks the real wire and runs nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final

from upright.core.ids import DeviceId
from upright.devices.identity import HubIdentity
from upright_execd.address import HubAddress
from upright_execd.keys import DeviceKey
from upright_execd.link import Me, shake_hands
from upright_execd.pinned import Pinned
from upright_execd.redial import Intervals, LinkEnd, Redial, Uniform
from upright_execd.socket import GoneError, Socket, dial
from upright_wire.frames import Inventory, Ping, Pong, Side, Sync
from upright_wire.session import Session

HUB_ID: Final = "hb_bench"
HUB_KEY: Final = hashlib.sha256(b"the hub of the bench").digest()
AT_ONCE: Final = 64
OPEN_S: Final = 60.0


def device_id(number: int) -> DeviceId:
    """Return a device's id."""
    return DeviceId(f"dv_{number:026d}")


def key_of(number: int) -> DeviceKey:
    """Return a device's key."""
    return DeviceKey(hashlib.sha256(f"device {number}".encode()).digest())


@dataclass(slots=True)
class Fleet:
    """Devices that dial, and dial again for ever by the product's own redial.

    ``came`` holds when each link was synced (``perf_counter``); ``beats`` counts pings answered.
    """

    port: int
    came: list[float] = field(default_factory=list)
    beats: set[int] = field(default_factory=set)
    up: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def device(self, number: int, uniform: Uniform) -> None:
        """Be one device until cancelled."""
        redial = Redial(intervals=Intervals(open_s=OPEN_S), uniform=uniform)
        while True:
            began = perf_counter()
            try:
                await self._link(number)
            except GoneError as error:
                lived = perf_counter() - began
                end = LinkEnd(reason=error.reason, code=error.code, lived_s=lived)
                await asyncio.sleep(redial.wait_s(end) or 0.0)

    async def _link(self, number: int) -> None:
        host = f"127.0.0.1:{self.port}"
        address = HubAddress(url=f"ws://{host}/v1/device", host=host)
        socket = await dial(address, open_s=OPEN_S)
        session = Session(Side.DEVICE)
        identity = HubIdentity(HUB_ID, HUB_KEY)
        pinned = Pinned(
            url=address.url,
            host=host,
            hub_id=HUB_ID,
            hub_key=identity.public_key,
            device_id=device_id(number),
        )
        me = Me(key=key_of(number), pinned=pinned, caps=("exec",), boot_id="b", os_boot_id="o")
        await shake_hands(socket, session, me)
        await socket.send(session.send(Inventory(commands=())))
        try:
            await self._serve(number, socket, session)
        finally:
            self._count(-1)

    async def _serve(self, number: int, socket: Socket, session: Session) -> None:
        self._count(1)
        while True:
            frame = await socket.receive()
            message = session.receive(frame) if isinstance(frame, str) else None
            if isinstance(message, Sync):
                self.came.append(perf_counter())
                self.news.set()
            elif isinstance(message, Ping):
                await socket.send(session.send(Pong(number=message.number)))
                self.beats.add(number)
                self.news.set()

    def _count(self, by: int) -> None:
        self.up += by
        self.news.set()

    async def until(self, true: Callable[[], bool], within_s: float) -> None:
        """Wait until something holds of it."""
        async with asyncio.timeout(within_s):
            while not true():
                self.news.clear()
                await self.news.wait()
