"""What people see of a device: its queue, what is foreign, and why a job has not begun."""

from __future__ import annotations

import pytest

from fixtures.dispatch_rig import BOX, Rig, unlinked
from fixtures.still_hub import StillHub
from upright.compose.commands_devices import HubMachines
from upright.core.work import WorkItem
from upright.devices.roster import StoredRoster
from upright.store import jobs, views_devices
from upright.web.parts import RefusedError
from upright_wire.command import State
from upright_wire.frames import Held


@pytest.fixture
async def item(hub: StillHub) -> WorkItem:
    """Open an item whose worker sleeps, and pair the device."""
    await hub.device(name=BOX)
    item = await hub.opened()
    await hub.asleep(item)
    return item


@pytest.mark.clause("E10.1")
async def test_a_device_shows_its_queue_by_argv_and_what_is_foreign(
    hub: StillHub, item: WorkItem
) -> None:
    rig = Rig(hub)
    job = await rig.queue(item)
    foreign = Held(command_id="jb_theirs", digest="0" * 64, state=State.STARTED)
    await unlinked(rig).on_inventory((foreign,))
    await StoredRoster(hub.units).suspect(BOX)
    shown = await hub.see(lambda c: views_devices.device(c, BOX))
    (command,) = shown["commands"]
    assert (command["id"], command["argv"], command["work_id"]) == (job, ["make", "c_1"], item.id)
    assert shown["foreign"] == [{"command": "jb_theirs", "state": "started"}]
    assert (shown["queued"], shown["under_way"], shown["shared_with"]) == (1, 0, ["*"])
    assert len(shown["questions"]) == 1
    (room,) = shown["workspaces"]
    assert room["repositories"] == ["git.example.org/acme/app"]


@pytest.mark.clause("B11.9")
async def test_a_wait_says_what_its_job_waits_for(hub: StillHub, item: WorkItem) -> None:
    rig = Rig(hub)
    job = await rig.queue(item)
    wait = {"ref": job, "why": "the job"}

    async def said(online: set[str]) -> str | None:
        held = await hub.see(lambda c: views_devices.held_back(c, [job]))
        found: str | None = views_devices.held_by(wait, held[job], online).get("held_by")
        return found

    assert await said(set()) == "box to come online"
    assert await said({BOX}) == "a place on box"
    await StoredRoster(hub.units).suspect(BOX)
    assert await said({BOX}) == "a person to say whether box is to be trusted"
    await rig.stop(job)
    assert await said(set()) is None
    assert (await hub.see(lambda c: jobs.read(c, job))).over


@pytest.mark.parametrize("name", ["x" * 101, "a\x1b[2Jb", "\u202eevil"])
async def test_a_name_that_can_not_be_shown_is_refused(
    hub: StillHub, item: WorkItem, name: str
) -> None:
    machines = HubMachines(hub.units, hub.wake)
    for words in (machines.rename(BOX, name), machines.share(BOX, name)):
        with pytest.raises(RefusedError):
            await words
    with pytest.raises(RefusedError, match="not shared"):
        await machines.unshare(BOX, "bob")
