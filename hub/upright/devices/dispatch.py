"""Dispatch: the rows of a device's commands on one side, its live link on the other (A3, E5.4).

What a device must be told is derived from the rows each time: a hint that is lost, or a hub that
was killed after a commit, is made good by the next look. The device keeps receipts, so a command
that is sent twice starts once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from upright.core import command_queue
from upright.core.ids import DeviceId, SessionId
from upright.core.job import Job, JobState
from upright.devices.link import DeviceLink
from upright.devices.links import Links
from upright.devices.ports import Order, SyncPlan
from upright.devices.reconcile import NEVER_RAN, Reconciled, reconcile
from upright.engine.hints import Hint
from upright.engine.signals import Signals
from upright.engine.units import Units
from upright.store import command_queue as store_queue
from upright.store import jobs, output, placing, watches
from upright.store.command_queue import Due, Foreign
from upright.store.placing import Root
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Refusal, Started, Stream
from upright_wire.errors import IllegalMoveError
from upright_wire.frames import Held, Refused, StateReport, Workspace, Workspaces
from upright_wire.plain import from_plain
from upright_wire.spec import Spec
from upright_wire.tools import heard

log = logging.getLogger(__name__)

Woken = Callable[[Collection[SessionId]], None]
TTL_MS = 10 * 60 * 1000
"""How long a command may wait on the device for its start: for a person's consent, mostly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What dispatch works with; ``woken`` is told which sessions have something to do."""

    units: Units
    signals: Signals
    woken: Woken
    most_under_way: int = command_queue.MOST_UNDER_WAY


class Dispatcher:
    """Implements ``engine.ports.Devices`` over the live links of this hub."""

    def __init__(self, wiring: Wiring, links: Links, *, sweep_s: float = 5.0) -> None:
        self._wiring = wiring
        self._links = links
        self._sweep_s = sweep_s
        self._ends: dict[DeviceId, LinkEnd] = {}
        self._hinted: set[DeviceId] = set()
        self._hint = Hint()

    def hint(self, devices: Collection[DeviceId]) -> None:
        """Say that these devices may have something to be sent."""
        self._hinted |= set(devices)
        self._hint.give()

    def online(self) -> frozenset[DeviceId]:
        """Return the devices with a live link to this hub."""
        return frozenset(DeviceId(device) for device in self._links.online())

    def serve(self, link: DeviceLink) -> LinkEnd:
        """Return what takes in all that a link brings; it replaces an older link's."""
        device = DeviceId(link.device_id)
        end = LinkEnd(self._wiring, link, device, more=self.hint)
        self._ends[device] = end
        return end

    async def run(self) -> None:
        """Push what is queued to the devices that were hinted at, and to all now and then."""
        while True:
            await self._hint.wait(self._sweep_s)
            hinted, self._hinted = self._hinted, set()
            if not hinted:
                self._forget_ended()
            for device in hinted or await self._wiring.units.read(store_queue.busy_devices):
                end = self._ends.get(device)
                if end is not None:
                    await end.push()

    def _forget_ended(self) -> None:
        """Let go of ends whose link is not the device's any more."""
        self._ends = {
            device: end for device, end in self._ends.items() if self._links.of(device) is end.link
        }


class LinkEnd:
    """The hub's end of one link: implements ``devices.ports.Inbound`` over the rows."""

    __slots__ = (
        "_cancelled",
        "_device",
        "_inputs",
        "_link",
        "_more",
        "_most",
        "_sent",
        "_signals",
        "_units",
        "_woken",
    )

    def __init__(
        self,
        wiring: Wiring,
        link: DeviceLink,
        device: DeviceId,
        *,
        more: Callable[[Collection[DeviceId]], None] = lambda _: None,
    ) -> None:
        self._units = wiring.units
        self._most = wiring.most_under_way
        self._more = more  # a command has ended: the next one may leave
        self._link = link
        self._device = device
        self._signals = wiring.signals
        self._woken = wiring.woken
        self._sent: dict[str, None] = {}  # an empty one weighs less than a set
        self._cancelled: dict[str, None] = {}
        self._inputs: tuple[tuple[Job, int], ...] = ()

    @property
    def link(self) -> DeviceLink:
        """The link that this is the end of."""
        return self._link

    # -------------------------------------------------------------- out
    async def push(self) -> None:
        """Send every stop that this link has not carried yet, and the commands whose turn it is.

        What waits for a person (E2.3), or for one of the device's places, stays queued here.
        """
        due = await self._units.read(lambda c: store_queue.due(c, self._device))
        for job in self._turns(due):
            try:
                await self._push_one(job)
            except IllegalMoveError:
                return  # the link is not synced, or has ended: the next sync tells all

    def _turns(self, due: Due) -> list[Job]:
        stops = [job for job in due.jobs if job.state is JobState.STOPPING]
        if due.holds_new:
            return stops
        queued = [
            job for job in due.jobs if job.state is JobState.QUEUED and job.id not in self._sent
        ]
        here = {job.id for job in queued}
        under_way = [job.session for job in due.jobs if not job.over and job.id not in here]
        waiting = [command_queue.Waiting(job=job.id, session=job.session) for job in queued]
        by_id = {job.id: job for job in queued}
        chosen = command_queue.leave(waiting, under_way, most=self._most)
        return [*stops, *(by_id[job] for job in chosen)]

    async def _push_one(self, job: Job) -> None:
        if job.state is JobState.QUEUED and job.id not in self._sent:
            if not self._link.is_synced:
                return  # it has not left, and a stop may still end it here
            self._sent[job.id] = None
            if not await self._units.write(lambda u: jobs.mark_sent(u.c, job.id)):
                return  # it was stopped before it left
            self._link.send_exec(_order(job))
            if job.stdin_bytes:
                self._link.send_stdin(job.id, await self._given(job))
        elif job.state is JobState.STOPPING and not job.sent:
            await self._end(job.id, NEVER_RAN)  # no device has heard of it
        elif job.state is JobState.STOPPING and job.id not in self._cancelled:
            self._cancelled[job.id] = None
            self._link.send_cancel(job.id)

    async def _given(self, job: Job) -> bytes:
        return await self._units.read(lambda c: output.given(c, job.id))

    # -------------------------------------------------------------- in
    async def on_inventory(self, commands: tuple[Held, ...]) -> SyncPlan:
        """Settle what each side knows (E5.4); the rows are right before the answer leaves."""
        held = {one.command_id: one for one in commands}

        def unit(u: Unit) -> Reconciled:
            mine = jobs.unsettled(u.c, self._device)
            others = set(held) - {job.id for job in mine}
            past = jobs.settled_among(u.c, self._device, others)
            found = reconcile(mine, held, past)
            for job, outcome in found.ends:
                jobs.end(u, job, outcome)
                jobs.mark_settled(u.c, job.id)
            for job in found.settled:
                jobs.mark_settled(u.c, job.id)
            foreign = [Foreign(command=one.command_id, state=one.state) for one in found.foreign]
            store_queue.note_foreign(u, self._device, foreign)
            return found

        found = await self._units.write(unit)
        for job, _ in found.ends:
            self._signals.notify(job.id)
        self._woken([job.session for job, _ in found.ends])
        self._sent, self._inputs = dict.fromkeys(found.carried), found.inputs
        self._cancelled = dict.fromkeys(found.plan.cancel)
        return found.plan

    async def on_synced(self) -> None:
        """Send what was queued while the device was away, and the input that it still wants."""
        for job, offset in self._inputs:
            self._link.send_stdin(job.id, await self._given(job), offset=offset)
        await self.push()

    async def on_state(self, report: StateReport) -> None:
        """Store that a command runs; what comes before that changes no row."""
        if report.started is not Started.YES:
            return

        def unit(u: Unit) -> None:
            job = self._mine(u, report.command_id)
            if job is not None:
                jobs.began(u, job, report.started)

        await self._units.write(unit)

    async def on_refused(self, refused: Refused) -> None:
        """Store that an ``exec`` was not taken: nothing was started by it."""
        started = Started.UNKNOWN if refused.refusal is Refusal.CONFLICT else Started.NO
        text = f"the device refused it: {refused.refusal.value}"
        outcome = Outcome(ending=Ending.LOST, started=started, text=text)
        await self._end(refused.command_id, outcome)

    async def on_output(self, command_id: str, stream: Stream, offset: int, data: bytes) -> None:
        """Store a piece of output; it is acknowledged after this returns."""

        def unit(u: Unit) -> list[SessionId]:
            if not self._is_mine(u, command_id):
                return []
            output.add(u.c, output.Stream(command_id, stream.value), offset, data)
            return watches.look(u, command_id)

        self._woken(await self._units.write(unit))

    async def on_omitted(self, command_id: str, stream: Stream, offset: int, count: int) -> None:
        """Store that so many bytes from *offset* on were counted and not kept."""

        def unit(u: Unit) -> None:
            if self._is_mine(u, command_id):
                output.skip(u.c, output.Stream(command_id, stream.value), offset, count)

        await self._units.write(unit)

    async def on_final(self, command_id: str, outcome: Outcome) -> None:
        """Store the end; the device may forget the command after this returns."""
        await self._end(command_id, outcome)

    async def _end(self, command_id: str, outcome: Outcome) -> None:
        def unit(u: Unit) -> SessionId | None:
            job = self._mine(u, command_id)
            if job is None:
                return None
            jobs.end(u, job, outcome)
            jobs.mark_settled(u.c, job.id)
            return job.session

        session = await self._units.write(unit)
        self._signals.notify(command_id)
        if session is not None:
            self._woken([session])
            self._more([self._device])

    async def on_workspaces(self, said: Workspaces) -> None:
        """Replace the device's announced workspaces; what waited for one goes on."""
        roots = [_root(one) for one in said.workspaces]
        self._woken(
            await self._units.write(lambda u: placing.announce(u, self._device, roots, said.files))
        )

    def _mine(self, u: Unit, command_id: str) -> Job | None:
        """Return the job if it is this device's: an event for another's is dropped, and said."""
        return jobs.find(u.c, command_id) if self._is_mine(u, command_id) else None

    def _is_mine(self, u: Unit, command_id: str) -> bool:
        if command_id in self._sent or jobs.device_of(u.c, command_id) == self._device:
            return True
        log.warning("command.foreign", extra={"device": self._device, "command": command_id[:64]})
        return False


def _root(said: Workspace) -> Root:
    """Read a workspace; what its labels say of tools is the device's, and not a name of it."""
    own, tools = heard(said.labels)
    return Root(path=said.path, remotes=said.remotes, label=", ".join(own), tools=tools)


def _order(job: Job) -> Order:
    return Order(
        command_id=job.id,
        session=job.session,
        lease_epoch=job.epoch,
        digest=job.digest,
        spec=from_plain(Spec, json.loads(job.spec_json)),
        ttl_ms=TTL_MS,
    )
