"""What a person settles about a paired device: a key that two machines use, wider capabilities."""

from __future__ import annotations

from functools import partial

import pytest

from fixtures.dispatch_rig import BOX, Rig, linked, unlinked
from fixtures.still_hub import StillHub
from upright.core.errors import IllegalMoveError
from upright.core.job import Job, JobState
from upright.core.work import WorkItem
from upright.devices.ports import Sighting
from upright.devices.roster import StoredRoster
from upright.store import command_queue, devices, people
from upright.store.errors import NotNowError
from upright.store.tables import DEVICE, JOB, REQUEST
from upright_wire.command import State
from upright_wire.frames import Held


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


async def links(hub: StillHub, *wider: str, remote: str = "192.0.2.1") -> None:
    """Let the device prove itself once more."""
    sighting = Sighting(device_id=BOX, remote=remote, boot_id="b", os_boot_id="o", wider_caps=wider)
    await StoredRoster(hub.units).seen(sighting)


async def decide(hub: StillHub, *, approve: bool) -> None:
    """Answer the one open request about a device."""
    asked = await hub.row(REQUEST, state="asked")
    device = await hub.do(lambda u: people.decide_device(u, asked["id"], "ann", approve=approve))
    assert device == BOX


def has_started(rig: Rig, count: int) -> bool:
    return len(rig.world.commands.starts) == count


def over(job: Job) -> bool:
    return job.over


# ------------------------------------------------------------------ two machines, one key (E2.3)
@pytest.mark.clause("E2.3")
async def test_new_commands_for_a_suspected_clone_wait_for_a_person(
    rig: Rig, item: WorkItem
) -> None:
    commands = rig.world.commands
    running = await rig.queue(item, call="c_1")
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        await rig.until(running, lambda row: row.state is JobState.RUNNING)
        await StoredRoster(rig.hub.units).suspect(BOX)
        new = await rig.queue(item, call="c_2")
        await rig.dispatcher._ends[BOX].push()
        assert (await rig.job(new)).state is JobState.QUEUED
        commands.write(running, b"left alone")
        commands.end(running)
        assert (await rig.until(running, over)).state is JobState.FINISHED
        await rig.dispatcher._ends[BOX].push()
        assert commands.starts == [running]
        await decide(rig.hub, approve=True)
        rig.dispatcher.hint([BOX])
        await commands.until(lambda: new in commands.starts)
        commands.end(new)
        await rig.until(new, over)
    assert await rig.out(running) == b"left alone"


async def test_what_waits_for_a_suspected_clone_can_be_stopped(rig: Rig, item: WorkItem) -> None:
    commands = rig.world.commands
    running = await rig.queue(item, call="c_1")
    async with rig.linked():
        await commands.until(lambda: commands.starts)
        await rig.until(running, lambda row: row.state is JobState.RUNNING)
        await StoredRoster(rig.hub.units).suspect(BOX)
        await rig.stop(running)
        rig.dispatcher.hint([BOX])
        await commands.until(lambda: commands.cancelled)
        commands.end(running, 143)
        await rig.until(running, over)


async def test_a_suspicion_is_one_question_and_survives_a_restart(rig: Rig, item: WorkItem) -> None:
    roster = StoredRoster(rig.hub.units)
    await links(rig.hub, remote="198.51.100.7")
    for _ in range(3):
        await roster.suspect(BOX)
    asked = await rig.hub.row(REQUEST)
    assert (asked["kind"], asked["state"]) == ("device", "asked")
    assert f"upright device revoke {BOX}" in asked["prompt"]
    assert "198.51.100.7" in asked["prompt"]
    await rig.hub.reopen()
    rig = Rig(rig.hub)
    job = await rig.queue(item)
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
        await rig.dispatcher._ends[BOX].push()
    assert rig.world.commands.starts == []
    await decide(rig.hub, approve=False)
    async with rig.linked():
        await rig.hub.until(lambda: linked(rig))
        await rig.dispatcher._ends[BOX].push()
    assert not (await rig.job(job)).sent


# ------------------------------------------------------------------ wider capabilities (E1.4)
@pytest.mark.clause("E1.4")
async def test_a_device_that_offers_more_is_one_question_and_keeps_the_old_set(
    hub: StillHub, item: WorkItem
) -> None:
    for _ in range(3):
        await links(hub, "pty", 'x"\n\x1b[2J')
    asked = await hub.row(REQUEST)
    assert (asked["kind"], asked["state"]) == ("device", "asked")
    assert "\x1b" not in asked["prompt"]
    known = await hub.see(lambda c: devices.read(c, BOX))
    assert known is not None
    assert "pty" not in known.caps
    await decide(hub, approve=True)
    known = await hub.see(lambda c: devices.read(c, BOX))
    assert known is not None
    assert "pty" in known.caps


@pytest.mark.clause("E1.3", "E1.4")
async def test_an_approval_of_other_capabilities_than_the_device_now_offers_fails(
    hub: StillHub, item: WorkItem
) -> None:
    await links(hub, "pty")
    shown = await hub.row(REQUEST)
    await links(hub, "pty", "admin")
    fresh = await hub.row(REQUEST, state="asked")
    assert fresh["id"] != shown["id"]
    with pytest.raises((IllegalMoveError, NotNowError)):
        await hub.do(lambda u: people.decide_device(u, shown["id"], "ann", approve=True))
    assert "admin" not in str((await hub.row(DEVICE))["caps"])


@pytest.mark.clause("E1.3")
async def test_an_approval_binds_exactly_what_was_shown(hub: StillHub, item: WorkItem) -> None:
    await links(hub, "pty")
    offered = '["pty", "root"]'
    await hub.do(lambda u: u.c.execute(DEVICE.update().values(offered_json=offered)))
    with pytest.raises(NotNowError):
        await decide(hub, approve=True)
    assert (await hub.row(REQUEST))["state"] == "asked"
    assert "root" not in (await hub.row(DEVICE))["caps"]


@pytest.mark.clause("E1.4")
async def test_what_a_person_has_declined_is_not_asked_about_again(
    hub: StillHub, item: WorkItem
) -> None:
    await links(hub, "admin")
    await decide(hub, approve=False)
    await links(hub, "admin")
    await links(hub, "admin")
    assert await hub.rows(REQUEST, state="asked") == []
    known = await hub.see(lambda c: devices.read(c, BOX))
    assert known is not None
    assert "admin" not in known.caps


async def test_a_revoked_device_is_no_question_any_more(hub: StillHub, item: WorkItem) -> None:
    await links(hub, "admin")
    await StoredRoster(hub.units).suspect(BOX)
    await hub.do(lambda u: devices.revoke(u, BOX))
    assert {row["state"] for row in await hub.rows(REQUEST)} == {"withdrawn"}


# ------------------------------------------------------------------ the queue
@pytest.mark.clause("E4.1")
async def test_a_device_is_given_no_more_than_its_places_and_every_session_its_share(
    hub: StillHub, item: WorkItem
) -> None:
    rig = Rig(hub, most_under_way=2)
    other = await hub.opened(rig.other())
    await hub.asleep(other)
    many = [await rig.queue(item, call=f"c_{n}") for n in range(4)]
    one = await rig.queue(other, call="c_9")
    commands = rig.world.commands
    async with rig.linked():
        await commands.until(lambda: len(commands.starts) == 2)
        assert commands.starts == [many[0], one]
        for started in range(3, 6):
            commands.end(commands.starts[started - 3])
            await commands.until(partial(has_started, rig, started))
        assert len(commands.starts) == 5
        for job in commands.starts[3:]:
            commands.end(job)
            await rig.until(job, over)
    assert await hub.see(lambda c: command_queue.waiting(c, BOX)) == 0


@pytest.mark.clause("E7.11")
async def test_commands_that_no_row_knows_are_shown_and_left_alone(
    rig: Rig, item: WorkItem
) -> None:
    foreign = Held(command_id="jb_theirs", digest="0" * 64, state=State.STARTED)
    plan = await unlinked(rig).on_inventory((foreign,))
    assert not (plan.cancel)
    assert not (plan.forget)
    assert not (plan.follow)
    row = await rig.hub.row(DEVICE)
    assert row["foreign"] == [{"command": "jb_theirs", "state": "started"}]
    await unlinked(rig).on_inventory(())
    assert (await rig.hub.row(DEVICE))["foreign"] == []
    assert await rig.hub.rows(JOB) == []
