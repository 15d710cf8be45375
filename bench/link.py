"""Link: commands over the product's own path: a row, the link, execd, a shim, rows again.

The hub's side runs in this process with its real parts (store, dispatcher, door, pairing); only
who asks for the command is the bench, where it is a turn in the product.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Final

import sqlalchemy as sa
from aiohttp import web

from bench.proxy import Proxy
from bench.world import World
from upright.cli.demo.children import Child
from upright.core.ids import DeviceId, JobId
from upright.core.job import Job
from upright.core.mandate import Trust
from upright.devices.dispatch import Dispatcher, Wiring
from upright.devices.door import Door, DoorParts
from upright.devices.identity import HubIdentity, new_private_key
from upright.devices.links import Links
from upright.devices.pairing import PairingParts, Pairings
from upright.devices.roster import StoredPairings, StoredRoster
from upright.devices.transport import GoneError
from upright.engine.clock import SortableIds, SystemClock
from upright.engine.rate import Rate
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.store import jobs, schema, sessions
from upright.store.database import Store
from upright.store.tables import OUTPUT
from upright.store.unit import Unit
from upright.web.bell import Bell, rung
from upright.web.device import SUBPROTOCOL
from upright.web.socket import DeviceSocket
from upright_wire.plain import to_plain
from upright_wire.spec import DEFAULT_QUOTA_BYTES, Cancel, Confinement, Spec, digest

ENDS_S: Final = 120.0
ONLINE_S: Final = 20.0
FRAME_BYTES: Final = 128 * 1024
_CODE: Final = re.compile(r'"code": ?"([^"]+)"')
RULES: Final = (
    'mode = "allow"\nfirst_redial_ms = 200\nmost_redial_ms = 1000\n'
    'environment_base = "own"\nas_root = true\n'
    "command_quota_bytes = 2147483648\nspool_quota_bytes = 8589934592\n"
)


class HubSide:
    """The hub's parts that a command passes through, made as ``compose`` makes them."""

    def __init__(self, store: Store, private_key: bytes | None = None) -> None:
        clock = SystemClock()
        self.bell, self.signals, self.hosts = Bell(), Signals(), set[str]()
        self.units = Units(store, clock, SortableIds(clock), committed=self.bell.ring)
        self.links = Links(clock)
        wiring = Wiring(units=self.units, signals=self.signals, woken=lambda _: None)
        self.dispatcher = Dispatcher(wiring, self.links, sweep_s=1.0)
        identity = HubIdentity("hb_bench", private_key or new_private_key())
        self.pairings = Pairings(
            PairingParts(
                identity=identity,
                store=StoredPairings(self.units),
                clock=clock,
                ids=SortableIds(clock),
                random_bytes=secrets.token_bytes,
                below=secrets.randbelow,
                poll_s=0.1,
            )
        )
        self.door = Door(
            DoorParts(
                identity=identity,
                roster=StoredRoster(self.units),
                pairings=self.pairings,
                links=self.links,
                clock=clock,
                random_bytes=secrets.token_bytes,
                hosts=self.hosts,
                serve=self.dispatcher.serve,
                failures=Rate(clock=clock, tries=1000, window_s=60.0),
                requests=Rate(clock=clock, tries=1000, window_s=60.0),
            )
        )

    async def device(self, request: web.Request) -> web.StreamResponse:
        """Take a device's websocket, as ``web.device`` does."""
        response = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,), max_msg_size=FRAME_BYTES, compress=False, timeout=1.0
        )
        await response.prepare(request)
        socket = DeviceSocket(response, request, GoneError)
        await self.door.serve(socket, remote=socket.remote)
        return response


@dataclass(slots=True, kw_only=True)
class Linked:
    """Runs commands on a paired device: a ``measures.Runner``.

    ``pid`` is the daemon's; its link was synced ``began_s`` seconds after its start.
    """

    hub: HubSide
    device: DeviceId
    root: Path
    session: str
    pid: int
    began_s: float
    _numbers: count[int] = field(default_factory=lambda: count(1))

    async def start(
        self, argv: Sequence[str], *, quota_bytes: int = DEFAULT_QUOTA_BYTES
    ) -> Ordered:
        """Queue a command, as the tool ``run`` does, and hint the dispatcher after the commit."""
        spec = Spec(
            argv=tuple(argv),
            cwd=str(self.root),
            confinement=Confinement.NONE,
            cancel=Cancel(grace_ms=2000),
            quota_bytes=quota_bytes,
        )
        order = jobs.Order(
            session=self.session,
            work="wk_bench",
            call_id=f"call_{next(self._numbers)}",
            device=self.device,
            spec_json=json.dumps(to_plain(spec)),
            digest=digest(spec),
            stdin=b"",
            epoch=1,
            background=False,
            turn="tu_bench",
        )
        job = await self.hub.units.write(lambda u: jobs.queue(u, order))
        self.hub.dispatcher.hint([self.device])
        return Ordered(self, job)

    async def sha256(self, job: JobId) -> tuple[str, str]:
        """Return the SHA-256 of the stdout that is stored, and what the device says it was."""

        def query(c: sa.Connection) -> tuple[str, str]:
            here, rows = hashlib.sha256(), OUTPUT.c
            mine = sa.select(rows.data).where(rows.job_id == job, rows.stream == "stdout")
            for data in c.scalars(mine.order_by(rows.offset)):
                here.update(data)
            detail = json.loads(jobs.read(c, job).detail_json)
            return here.hexdigest(), str(detail["stdout"]["sha256"])

        return await self.hub.units.read(query)


@dataclass(frozen=True, slots=True)
class Ordered:
    """A command on its way: a ``measures.Running``."""

    linked: Linked
    job: JobId

    async def first_byte(self) -> None:
        """Wait until a byte of stdout is committed."""
        async with asyncio.timeout(ENDS_S):
            while True:
                ticket = self.linked.hub.bell.ticket()
                if (await self._read()).stdout_bytes:
                    return
                await rung(ticket, 1.0)

    async def cancel(self) -> None:
        """Ask for its end, as the tool ``stop`` does."""

        def unit(u: Unit) -> None:
            jobs.stop(u, jobs.read(u.c, self.job))

        await self.linked.hub.units.write(unit)
        self.linked.hub.dispatcher.hint([self.linked.device])

    async def end(self, within_s: float = ENDS_S) -> tuple[int, int]:
        """Wait until its end is committed, as a turn does."""
        async with asyncio.timeout(within_s):
            with self.linked.hub.signals.listen([self.job]) as listening:
                while not (job := await self._read()).over:
                    await listening.wait(1.0)
        return job.stdout_bytes, job.stderr_bytes

    async def _read(self) -> Job:
        return await self.linked.hub.units.read(lambda c: jobs.read(c, self.job))


@asynccontextmanager
async def linked(world: World, proxy: Proxy | None = None) -> AsyncIterator[Linked]:
    """Run a hub's side, and an execd that is paired by its own command line, through *proxy*."""
    folder = world.place("link")
    await asyncio.to_thread(schema.create, folder / "hub.db")
    store = await asyncio.to_thread(Store.open, folder / "hub.db")
    hub = HubSide(store)
    app = web.Application()
    app.router.add_get("/v1/device", hub.device)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    if proxy is not None:
        proxy.target, port = port, proxy.port
    hub.hosts.add(f"127.0.0.1:{port}")
    try:
        async with asyncio.TaskGroup() as group:
            service = group.create_task(hub.dispatcher.run(), name="dispatch")
            execd = _Execd(world, folder)
            device = await execd.pair(hub, f"http://127.0.0.1:{port}")
            began = perf_counter()
            child = await execd.run(hub)
            began_s = perf_counter() - began
            session = await hub.units.write(
                lambda u: sessions.create(
                    u, kind="worker", agent="worker", work=None, trust=Trust.OPERATOR
                )
            )
            yield Linked(
                hub=hub,
                device=device,
                root=execd.root,
                session=session,
                pid=child.process.pid,
                began_s=began_s,
            )
            await world.end(child)
            service.cancel()
    finally:
        hub.links.close_all()
        await runner.cleanup()
        await store.close()


class _Execd:
    """The daemon of the bench, set up by its command line."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._home, self.root = folder / "execd", folder / "work"
        self._argv = [sys.executable, "-m", "upright_execd", "--home", str(self._home)]
        self._home.mkdir(mode=0o700)
        self.root.mkdir()
        (self._home / "execd.toml").write_text(RULES, encoding="ascii")
        (self._home / "execd.toml").chmod(0o600)

    async def pair(self, hub: HubSide, url: str) -> DeviceId:
        """Pair it, and approve that here."""
        children = self._world.children
        add = [*self._argv, "workspace", "add", str(self.root)]
        await children.run(add, env={}, within_s=ONLINE_S)
        key = ["--key-file", str(self._home / "key")]
        pair = [*self._argv, "pair", url, "--jsonl", *key]
        child = await children.start(f"pair-{self._home.parent.name}", pair, env={})
        async with asyncio.timeout(ONLINE_S):
            while (found := _CODE.search(await child.output())) is None:
                children.check()
                await children.pause()
            pairing = await hub.pairings.look(found[1])
            approval = await hub.pairings.approve(pairing, by="bench")
            assert await child.process.wait() == 0
        children.forget(child)
        return DeviceId(approval.device_id)

    async def run(self, hub: HubSide) -> Child:
        """Start the daemon; return once its link is synced."""
        name = f"execd-{self._home.parent.name}"
        child = await self._world.children.start(name, [*self._argv, "run"], env={})
        async with asyncio.timeout(ONLINE_S):
            while not any(
                link is not None and link.is_synced
                for link in map(hub.links.of, hub.links.online())
            ):
                self._world.children.check()
                await self._world.children.pause()
        return child
