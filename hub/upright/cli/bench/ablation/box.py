"""Box: the device of the experiment: slow commands take their time and print something."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from upright.cli.bench.ablation import trace
from upright.core.ids import DeviceId, SessionId
from upright.core.job import Job, JobState
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.store import devices, jobs, output, placing
from upright.store.devices import Device
from upright.store.placing import Root
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Started

DEVICE: Final = DeviceId("dv_" + "0" * 26)
CAPS: Final = (
    "exec",
    "confinement.none",
    "confinement.workspace",
    "confinement.workspace_no_network",
)


def pair(u: Unit) -> None:
    """Pair the device, which has the repository and runs everybody's items."""
    known = Device(
        id=DEVICE, name="box", public_key=DEVICE.encode(), state=devices.ACTIVE, caps=CAPS
    )
    devices.add(u, known, "{}")
    placing.share(u, DEVICE, placing.EVERYBODY)
    placing.announce(u, DEVICE, [Root(path="/src/app", remotes=(trace.URL,))], ())


@dataclass(slots=True, kw_only=True)
class Box:
    """Implements ``engine.ports.Devices``; ``scale`` is real seconds for one of the trace's."""

    units: Units
    signals: Signals
    woken: Callable[[Collection[SessionId]], None]
    seed: int
    scale: float = 1.0
    live: set[str] = field(default_factory=set)
    _hinted: asyncio.Event = field(default_factory=asyncio.Event)

    def hint(self, devices: Collection[DeviceId]) -> None:
        """Look for commands."""
        if devices:
            self._hinted.set()

    def online(self) -> frozenset[DeviceId]:
        """Return the one device."""
        return frozenset({DEVICE})

    async def run(self) -> None:
        """Run what is queued, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._hinted.wait()
                self._hinted.clear()
                for job in await self.units.read(lambda c: jobs.unsettled(c, DEVICE)):
                    self._start(group, job)

    def _start(self, group: asyncio.TaskGroup, job: Job) -> None:
        if job.state is JobState.QUEUED and job.id not in self.live:
            self.live.add(job.id)
            group.create_task(self._command(job), name=f"command {job.id}")

    async def _command(self, job: Job) -> None:
        argv = json.loads(job.spec_json)["argv"]
        task, command = str(argv[3]), " ".join(argv[1:3])

        def began(u: Unit) -> None:
            jobs.mark_sent(u.c, job.id)
            jobs.began(u, job, Started.YES)

        def ended(u: Unit) -> None:
            data = trace.printed(self.seed, task, command).encode()
            output.add(u.c, output.Stream(job.id, "stdout"), 0, data)
            end = Outcome(ending=Ending.EXITED, started=Started.YES, number=0)
            jobs.end(u, jobs.read(u.c, job.id), end)
            jobs.mark_settled(u.c, job.id)

        await self.units.write(began)
        await self.units.clock.sleep(self.scale * trace.seconds(self.seed, task, command))
        await self.units.write(ended)
        self.live.discard(job.id)
        self.signals.notify(job.id)
        self.woken([job.session])
