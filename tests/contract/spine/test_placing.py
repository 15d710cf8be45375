"""Whose items a device runs, and where an item goes on (E10)."""

from __future__ import annotations

import pytest

from fixtures.agents import TEST, WAIT_CI, Agents, ScriptedChat
from fixtures.still_hub import ANN, BOSS, CAL, CI, DEVICE, EVE, FILES, URL, StillHub, trigger
from upright.api import Actor
from upright.core.ids import DeviceId
from upright.core.work import WorkItem, WorkState
from upright.store import devices, placing
from upright.store.devices import Device
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.placing import Absent, Binding, Root
from upright.store.tables import JOB, PLACEMENT, RELATION, REQUEST
from upright.store.unit import Unit

OTHER = DeviceId("dv_" + "o" * 26)


async def pair(hub: StillHub, name: DeviceId = DEVICE, owner: str = "operator") -> None:
    """Pair a device that is its owner's alone."""
    known = Device(
        id=name,
        name="box" if name == DEVICE else "other",
        public_key=name.encode(),
        state=devices.ACTIVE,
        caps=("exec",),
        owner=owner,
    )

    def unit(u: Unit) -> None:
        devices.add(u, known, "{}")
        placing.announce(u, name, [Root(path=f"/src/{known.name}", remotes=(URL,))], FILES)

    await hub.do(unit)


async def where(hub: StillHub, item: WorkItem) -> Binding | Absent:
    return await hub.see(lambda c: placing.find(c, item))


@pytest.mark.parametrize(
    ("by", "whose"),
    [(ANN, "ann"), (BOSS, "operator"), (CI, "operator"), (CAL, "operator"), (EVE, "operator")],
)
async def test_an_item_is_the_members_who_asked_for_it_or_the_operators(
    hub: StillHub, by: Actor, whose: str
) -> None:
    item = await hub.opened(trigger(by=by))
    await hub.asleep(item)
    assert await hub.see(lambda c: placing.principal(c, item)) == whose


@pytest.mark.clause("E10.2")
async def test_a_child_is_for_whom_its_parent_is(hub: StillHub) -> None:
    parent = await hub.opened(trigger(by=ANN))
    await hub.asleep(parent)
    other = await hub.opened(trigger(by=CI, thread="pr:8"))
    await hub.asleep(other)
    row = {"work_id": other.id, "kind": "child_of", "other_id": parent.id}
    await hub.do(lambda u: u.c.execute(RELATION.insert(), row))
    assert await hub.see(lambda c: placing.principal(c, other)) == "ann"


@pytest.mark.clause("E10.2")
async def test_a_device_runs_its_owners_items_and_nobody_elses(hub: StillHub) -> None:
    await pair(hub, owner="ann")
    hers, his = await hub.opened(trigger(by=ANN)), await hub.opened(trigger(by=CI, thread="pr:8"))
    for item in (hers, his):
        await hub.asleep(item)
    assert isinstance(await where(hub, hers), Binding)
    absent = await where(hub, his)
    assert isinstance(absent, Absent)
    assert absent.remedy == f"upright device share {DEVICE} --with operator"


@pytest.mark.clause("E10.2", "E10.4")
async def test_an_item_waits_for_the_share_and_goes_on_with_it(hub: StillHub) -> None:
    await pair(hub)
    item = await hub.opened(trigger(by=ANN))
    agents = Agents(hub, ScriptedChat(worker=(TEST, TEST, WAIT_CI)))
    await agents.go()
    assert (await hub.item(item)).state is WorkState.WAITING_SYSTEM
    asked = await hub.row(REQUEST, state="asked")
    assert asked["prompt"].endswith(f"run: upright device share {DEVICE} --with ann")
    assert await hub.rows(JOB) == []
    woken = await hub.do(lambda u: placing.share(u, DEVICE, "ann"))
    assert woken == [item.session]
    await agents.go()
    assert len(await hub.rows(JOB)) == 1
    assert await hub.rows(REQUEST, state="asked") == []


@pytest.mark.clause("E10.2")
async def test_what_is_not_shared_any_more_runs_nothing_new(hub: StillHub) -> None:
    await pair(hub)
    item = await hub.opened(trigger(by=ANN))
    await hub.asleep(item)
    await hub.do(lambda u: placing.share(u, DEVICE, "ann"))
    await hub.do(lambda u: placing.share(u, DEVICE, "ann"))
    assert await hub.see(lambda c: placing.shared_with(c, DEVICE)) == ["ann"]
    assert await hub.do(lambda u: placing.unshare(u, DEVICE, "ann"))
    assert not await hub.do(lambda u: placing.unshare(u, DEVICE, "ann"))
    assert isinstance(await where(hub, item), Absent)


async def test_only_a_paired_device_is_shared_or_renamed(hub: StillHub) -> None:
    await pair(hub)
    await hub.do(lambda u: placing.rename(u, DEVICE, "laptop"))
    known = await hub.see(lambda c: devices.read(c, DEVICE))
    assert known is not None
    assert known.name == "laptop"
    await hub.do(lambda u: devices.revoke(u, DEVICE))
    for unit in (
        lambda u: placing.share(u, DEVICE, "ann"),
        lambda u: placing.rename(u, DEVICE, "x"),
    ):
        with pytest.raises(UnknownIdError):
            await hub.do(unit)


async def placed(hub: StillHub) -> WorkItem:
    """Open an item that has its worktree on the first of two devices."""
    await pair(hub)
    item = await hub.opened()
    agents = Agents(hub, ScriptedChat(worker=(TEST, WAIT_CI)))
    await agents.go()
    await pair(hub, OTHER)
    await hub.do(lambda u: placing.share(u, OTHER, "*"))
    return item


@pytest.mark.clause("E10.4")
async def test_an_item_does_not_change_its_device_by_itself(hub: StillHub) -> None:
    item = await placed(hub)
    found = await where(hub, item)
    assert isinstance(found, Binding)
    assert found.device == DEVICE
    await hub.do(lambda u: devices.revoke(u, DEVICE))
    absent = await where(hub, item)
    assert isinstance(absent, Absent)
    assert absent.remedy == f"upright work move {item.id} --to {OTHER}"


@pytest.mark.clause("E10.4")
async def test_a_person_moves_an_item_to_another_device(hub: StillHub) -> None:
    item = await placed(hub)
    await hub.do(lambda u: placing.move(u, item, OTHER))
    found = await where(hub, item)
    assert isinstance(found, Binding)
    assert (found.device, found.path) == (OTHER, "/src/other")
    assert len(await hub.rows(PLACEMENT)) == 1


@pytest.mark.clause("E10.4")
@pytest.mark.parametrize(
    ("tools", "said"),
    [((), ""), (("git", "make"), ""), (("git",), f"used make, and {OTHER} has no such program")],
)
async def test_programs_that_another_device_lacks_are_named_before_anything_moves(
    hub: StillHub, tools: tuple[str, ...], said: str
) -> None:
    item = await placed(hub)
    there = Root(path="/src/other", remotes=(URL,), tools=tools)
    await hub.do(lambda u: placing.announce(u, OTHER, [there], FILES))
    if said:
        with pytest.raises(NotNowError, match=said):
            await hub.do(lambda u: placing.move(u, item, OTHER))
    else:
        await hub.do(lambda u: placing.move(u, item, OTHER))
    found = await where(hub, item)
    assert isinstance(found, Binding)
    assert found.device == (DEVICE if said else OTHER)


@pytest.mark.clause("E10.4")
async def test_what_another_device_lacks_is_said_before_anything_moves(hub: StillHub) -> None:
    item = await placed(hub)
    await hub.do(lambda u: placing.announce(u, OTHER, []))
    with pytest.raises(NotNowError, match="no clone"):
        await hub.do(lambda u: placing.move(u, item, OTHER))
    await pair(hub, OTHER, owner="ann")
    await hub.do(lambda u: placing.unshare(u, OTHER, "*"))
    with pytest.raises(NotNowError, match="--with operator"):
        await hub.do(lambda u: placing.move(u, item, OTHER))
    with pytest.raises(UnknownIdError):
        await hub.do(lambda u: placing.move(u, item, "dv_nobody"))
    found = await where(hub, item)
    assert isinstance(found, Binding)
    assert found.device == DEVICE
