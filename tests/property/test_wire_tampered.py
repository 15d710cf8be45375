"""A proxy that ends TLS: one byte changed, or one frame added, closes the link; nothing runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.wire_world import End, Linked, Tamper, World, order
from upright_wire.command import Stream
from upright_wire.frames import CloseCode

WRITTEN = bytes(range(256)) * 40


@dataclass(frozen=True)
class Change:
    """At the sealed frame *at* of one side: flip the lowest bit of a byte, or add a frame."""

    by_hub: bool
    at: int
    byte: int
    adds: str | bytes | None  # None: flip; "": the frame itself once more


CHANGES = st.builds(
    Change,
    by_hub=st.booleans(),
    at=st.integers(0, 5),
    byte=st.integers(0, 100_000),
    adds=st.one_of(
        st.none(),
        st.just(""),
        st.just('{"type":"exec","seq":1}'),
        st.text(min_size=1, max_size=60),
        st.binary(min_size=1, max_size=60),
    ),
)


@dataclass
class Proxy:
    """Stands between the two; ``did`` says that its change came about."""

    change: Change
    world: World = field(default_factory=World)
    seen: int = 0
    did: bool = False
    target: End | None = None

    def tamper(self, frame: str | bytes) -> str | bytes:
        """Change one sealed frame; a handshake's frames (text without a MAC) pass."""
        if isinstance(frame, str) and "\n" not in frame:
            return frame
        self.seen += 1
        if self.seen - 1 != self.change.at:
            return frame
        self.did = True
        if self.change.adds is None:
            return _flipped(frame, self.change.byte)
        assert self.target is not None
        self.target.inbox.put_nowait(self.change.adds or frame)
        return frame

    async def play(self) -> tuple[Linked, int | None]:
        """Run one command through it, to its end or to the link's."""
        self.world.dispatcher.orders = [order()]
        says: dict[str, Tamper] = {"hub_says" if self.change.by_hub else "device_says": self.tamper}
        async with self.world.linked(**says) as sockets, asyncio.TaskGroup() as group:
            self.target = sockets.device if self.change.by_hub else sockets.hub
            work = group.create_task(self.work(sockets))
            end = await sockets.daemon
            await sockets.door
            work.cancel()
        return sockets, end.code

    async def work(self, sockets: Linked) -> None:
        commands = self.world.commands
        while not commands.forgotten:
            commands.news.clear()
            running = commands.held.get("jb_1")
            if running is not None and running.outcome is None:
                commands.write("jb_1", WRITTEN)
                commands.end("jb_1")
            await commands.news.wait()
        sockets.hub.abort()


def _flipped(frame: str | bytes, byte: int) -> str | bytes:
    raw = bytearray(frame.encode() if isinstance(frame, str) else frame)
    raw[byte % len(raw)] ^= 1
    return raw.decode() if isinstance(frame, str) else bytes(raw)


@pytest.mark.clause("E2.2")
@settings(max_examples=150)
@given(CHANGES)
def test_a_changed_or_added_frame_closes_the_link_and_nothing_of_it_counts(change: Change) -> None:
    proxy = Proxy(change)

    async def run() -> tuple[Linked, int | None]:
        async with asyncio.timeout(10):
            return await proxy.play()

    sockets, code = asyncio.run(run())
    world = proxy.world
    if proxy.did:
        told = {code, sockets.device.closed_with, sockets.hub.closed_with}
        assert CloseCode.PROTOCOL in told or world.commands.forgotten == ["jb_1"]
    assert world.commands.starts in ([], ["jb_1"])
    assert WRITTEN.startswith(bytes(world.dispatcher.output["jb_1", Stream.STDOUT]))
    assert not world.commands.cancelled
    if "jb_1" in world.dispatcher.finals:
        assert bytes(world.dispatcher.output["jb_1", Stream.STDOUT]) == WRITTEN
