"""Dispatch over real rows and the real wire: each command starts once and ends truly (E5.4, E7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from fixtures.dispatch_rig import BOX, Rig, linked, unlinked
from fixtures.still_hub import StillHub
from upright.core.ids import DeviceId
from upright.core.job import Job, JobState
from upright.core.wait import WaitKind
from upright.core.work import WorkItem, WorkState
from upright.devices.link import DeviceLink
from upright.devices.ports import Order
from upright.store import devices, intake, jobs, output, placing, waits, work
from upright.store.tables import JOB, OUTPUT, SESSION
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Refusal, Started, State, Stream
from upright_wire.frames import Refused, StateReport, Workspace, Workspaces

GREEN = Outcome(ending=Ending.EXITED, started=Started.YES, number=0)


@pytest.fixture
def rig(hub: StillHub) -> Rig:
    return Rig(hub)


@pytest.fixture
async def item(hub: StillHub) -> WorkItem:
    """Open an item whose worker sleeps, and pair the device."""
    await hub.device(name=BOX)
    item = await hub.opened()
    await hub.asleep(item)
    return item


def over(job: Job) -> bool:
    return job.over


# ------------------------------------------------------------------ over a link
@pytest.mark.clause("B10.1", "B10.2")
async def test_a_command_runs_once_and_its_output_and_end_are_stored(
    rig: Rig, item: WorkItem
) -> None:
    job = await rig.queue(item)
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        await rig.until(job, lambda row: row.state is JobState.RUNNING)
        commands.write(job, b"fine\n")
        commands.end(job)
        await commands.until(lambda: commands.forgotten)
    row = await rig.job(job)
    assert (row.state, row.code, await rig.out(job)) == (JobState.FINISHED, 0, b"fine\n")
    assert commands.starts == commands.forgotten == [job]
    assert rig.hub.hinted == [item.session]
    (told,) = await rig.hub.see(lambda c: intake.unread(c, item.session))
    assert told.trigger.kind == "job.finished"


async def test_a_hint_sends_what_was_queued_on_a_live_link(rig: Rig, item: WorkItem) -> None:
    commands = rig.world.commands
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
        job = await rig.queue(item)
        rig.dispatcher.hint([BOX])
        await commands.until(lambda: commands.starts)
        commands.end(job)
        await rig.until(job, over)


@pytest.mark.clause("B11.3", "E7.12")
async def test_what_is_queued_while_the_device_is_away_goes_out_when_it_is_back(
    rig: Rig, item: WorkItem
) -> None:
    commands = rig.world.commands
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
    job = await rig.queue(item)
    end = rig.dispatcher._ends[BOX]
    await end.push()
    assert not (await rig.job(job)).sent
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        commands.end(job)
        await rig.until(job, over)
    assert commands.starts == [job]


@pytest.mark.clause("B10.2")
async def test_what_is_stopped_while_the_device_is_away_has_never_run(
    rig: Rig, item: WorkItem
) -> None:
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
    job = await rig.queue(item)
    await rig.dispatcher._ends[BOX].push()
    await rig.hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
    row = await rig.job(job)
    assert (row.state, row.started) == (JobState.STOPPED, "no")
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
    assert rig.world.commands.starts == []


@pytest.mark.clause("E4.1", "E7.2")
async def test_a_frame_that_never_left_is_sent_after_the_next_sync(
    rig: Rig, item: WorkItem
) -> None:
    job = await rig.queue(item)
    await rig.hub.do(lambda u: jobs.mark_sent(u.c, job))  # and then the hub was killed
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        commands.end(job)
        await rig.until(job, over)
    assert commands.starts == [job]


@pytest.mark.clause("B10.2", "E5.4", "E7.3")
async def test_output_goes_on_at_the_stored_offset_after_a_cut(rig: Rig, item: WorkItem) -> None:
    job = await rig.queue(item)
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        commands.write(job, b"before ")
        await rig.until(job, lambda row: row.stdout_bytes == 7)
    commands.write(job, b"after")
    commands.end(job)
    async with rig.linked():
        await commands.until(lambda: commands.forgotten)
    assert await rig.out(job) == b"before after"
    assert len(await rig.hub.rows(OUTPUT)) == 2
    assert commands.starts == [job]


@pytest.mark.clause("B8.6", "E4.4")
async def test_a_command_that_the_device_has_forgotten_is_lost_and_not_repeated(
    rig: Rig, item: WorkItem
) -> None:
    job = await rig.queue(item)
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        await rig.until(job, lambda row: row.state is JobState.RUNNING)
    commands.held.clear()
    async with rig.linked():
        row = await rig.until(job, over)
    assert (row.state, row.outcome, row.started) == (JobState.LOST, "lost", "yes")
    assert commands.starts == [job]
    assert rig.hub.hinted == [item.session]


@pytest.mark.clause("B10.2", "E6.1")
async def test_a_stop_reaches_the_device_and_the_device_says_how_it_ended(
    rig: Rig, item: WorkItem
) -> None:
    job = await rig.queue(item)
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        await rig.until(job, lambda row: row.state is JobState.RUNNING)
        await rig.hub.do(lambda u: jobs.stop(u, jobs.read(u.c, job)))
        rig.dispatcher.hint([BOX])
        await commands.until(lambda: commands.cancelled)
        assert (await rig.job(job)).state is JobState.STOPPING
        commands.end(job, 143)
        row = await rig.until(job, over)
    assert (row.state, row.code) == (JobState.FAILED, 143)


@pytest.mark.clause("E4.1", "E4.6")
async def test_input_arrives_whole(rig: Rig, item: WorkItem) -> None:
    given = bytes(range(256)) * 5000
    job = await rig.queue(item, stdin=given)
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: job in commands.held and commands.held[job].has_all_stdin)
        assert commands.held[job].stdin == given
        commands.end(job)
        await rig.until(job, over)
    assert (await rig.job(job)).stdin_bytes == len(given)
    assert await rig.hub.see(lambda c: output.given(c, job)) == given


async def test_a_piece_of_output_rewrites_no_input(rig: Rig, item: WorkItem) -> None:
    """The row that every piece of output changes is small, whatever the input is."""
    await rig.queue(item, stdin=bytes(1_000_000))
    row = await rig.hub.row(JOB)
    assert sum(len(str(value)) for value in row.values()) < 2000


# ------------------------------------------------------------------ what a link may bring
@pytest.mark.clause("E5.4")
async def test_what_another_device_says_of_a_command_is_dropped(rig: Rig, item: WorkItem) -> None:
    job = await rig.queue(item)
    before = await rig.hub.row(JOB)
    foreign = unlinked(rig, DeviceId("dv_other"))
    await foreign.on_state(StateReport(command_id=job, state=State.STARTED, started=Started.YES))
    await foreign.on_output(job, Stream.STDOUT, 0, b"lies")
    await foreign.on_omitted(job, Stream.STDOUT, 0, 10)
    await foreign.on_refused(Refused(command_id=job, refusal=Refusal.CONFLICT))
    await foreign.on_final(job, GREEN)
    assert await rig.hub.row(JOB) == before
    assert await rig.hub.rows(OUTPUT) == []
    assert rig.hub.hinted == []


async def test_what_a_device_says_of_a_command_that_nobody_knows_is_dropped(
    rig: Rig, item: WorkItem
) -> None:
    await unlinked(rig).on_final("jb_nobody", GREEN)
    assert rig.hub.hinted == []


@pytest.mark.parametrize(
    ("refusal", "started"),
    [(Refusal.CONFLICT, "unknown"), (Refusal.STALE_EPOCH, "no"), (Refusal.BAD_DIGEST, "no")],
)
async def test_a_refused_command_is_lost_and_says_what_is_known(
    rig: Rig, item: WorkItem, refusal: Refusal, started: str
) -> None:
    job = await rig.queue(item)
    await unlinked(rig).on_refused(Refused(command_id=job, refusal=refusal))
    row = await rig.job(job)
    assert (row.state, row.started) == (JobState.LOST, started)
    assert rig.hub.hinted == [item.session]


@pytest.mark.clause("B10.2", "E6.1")
async def test_a_stop_that_comes_first_keeps_a_command_from_leaving(
    rig: Rig, item: WorkItem
) -> None:
    line = Line()
    end = rig.end(cast("DeviceLink", line))
    job = await rig.queue(item)
    seen = await rig.job(job)  # what a push sees that began before the stop
    await rig.hub.do(lambda u: jobs.stop(u, seen))
    await end._push_one(seen)
    assert (await rig.job(job)).state is JobState.STOPPED
    assert line.sent == []


@dataclass
class Line:
    """A link that takes everything."""

    sent: list[Order] = field(default_factory=list)
    is_synced: bool = True

    def send_exec(self, order: Order) -> None:
        self.sent.append(order)


async def test_the_end_of_a_command_wakes_whoever_waits_for_it_in_this_process(
    rig: Rig, item: WorkItem
) -> None:
    job = await rig.queue(item)
    with rig.signals.listen([job]) as listening:
        await unlinked(rig).on_final(job, GREEN)
        assert await listening.wait(0)


@pytest.mark.clause("B11.3", "E10.1")
async def test_announced_workspaces_replace_the_old_and_wake_what_waited_for_one(
    rig: Rig, item: WorkItem
) -> None:
    end = unlinked(rig)
    await end.on_workspaces(Workspaces(workspaces=()))
    assert isinstance(await rig.hub.see(lambda c: placing.find(c, item)), placing.Absent)

    def wait(u: Unit) -> None:
        asked = waits.Asked(kind=WaitKind.SYSTEM, ref=placing.NO_DEVICE, why="a device")
        waits.register(u, item.id, asked)
        u.c.execute(SESSION.update().where(SESSION.c.id == item.session).values(ready_at_ms=None))
        work.rest(u, work.woken(u, work.read(u.c, item.id)))

    await rig.hub.do(wait)
    assert (await rig.hub.item(item)).state is WorkState.WAITING_SYSTEM
    root = Workspace(path="/src/app", remotes=("git@git.example.org:acme/app.git",), labels=("a",))
    await end.on_workspaces(Workspaces(workspaces=(root, root)))
    assert rig.hub.hinted == [item.session]
    place = await rig.hub.see(lambda c: placing.find(c, item))
    assert isinstance(place, placing.Binding)
    assert (place.device, place.path) == (BOX, "/src/app")


@pytest.mark.clause("B10.2")
async def test_a_revoked_device_loses_its_jobs_and_their_workers_are_told(
    rig: Rig, item: WorkItem
) -> None:
    await rig.queue(item, call="c_1")
    sent = await rig.queue(item, call="c_2")
    await rig.hub.do(lambda u: jobs.mark_sent(u.c, sent))
    woken = await rig.hub.do(lambda u: devices.revoke(u, BOX))
    assert woken == [item.session, item.session]
    assert [row["started"] for row in await rig.hub.rows(JOB)] == ["no", "unknown"]
    assert {row["state"] for row in await rig.hub.rows(JOB)} == {"lost"}
    assert await rig.hub.do(lambda u: devices.revoke(u, BOX)) is None


@pytest.mark.clause("E2.3")
async def test_the_end_of_a_link_that_is_gone_is_let_go(rig: Rig, item: WorkItem) -> None:
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
        rig.dispatcher._forget_ended()
        assert set(rig.dispatcher._ends) == {BOX}
    rig.dispatcher._forget_ended()
    assert not rig.dispatcher._ends
