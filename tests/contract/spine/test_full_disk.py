"""A disk that is nearly full: refused before SQLite fails, and everything goes on afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fixtures.still_hub import SOURCE, StillHub, trigger
from upright.compose.backlog import Backlog
from upright.compose.growth import Growth
from upright.compose.intake import Intake, IntakeParts
from upright.core.retention import Keep
from upright.engine.disk import Disk, DiskParts
from upright.engine.embedded import EmbeddedEngine, EngineLimits
from upright.engine.ports import Lease
from upright.engine.pruner import Pruner, PruneTimes
from upright.engine.signals import Signals
from upright.settings.rules import write_rules
from upright.settings.shape import RetentionSection
from upright.store import rules
from upright.store.errors import DiskFullError
from upright.store.policy import Base
from upright.store.tables import TRIGGER


class Room:
    """How much there is on the disk."""

    def __init__(self) -> None:
        self.free = 1000

    def look(self, _folder: Path) -> int:
        return self.free


def growth(hub: StillHub, room: Room) -> Growth:
    pruner = Pruner(hub.units, Keep(), None, PruneTimes())
    parts = DiskParts(
        folder=Path("/srv"),
        least_bytes=100,
        every_s=1.0,
        clock=hub.clock,
        filling=pruner.hint,
        free=room.look,
    )
    return Growth(units=hub.units, pruner=pruner, spill=None, disk=Disk(parts))


@pytest.mark.case("HO/2984")
async def test_a_full_disk_takes_nothing_in_begins_nothing_and_recovers(hub: StillHub) -> None:
    room, begun = Room(), list[Lease]()
    parts = growth(hub, room)
    assert parts.disk is not None
    own = write_rules(hub.policy.rules.rules[:1])  # the built-in ones stand behind it
    await hub.do(lambda u: rules.take_over(u, own))
    limits = EngineLimits(sweep_s=0.01)
    engine = EmbeddedEngine(hub.units, limits, lambda: 0.5, Signals(), held=lambda: parts.full)
    intake = Intake(
        IntakeParts(
            units=hub.units,
            engine=engine,
            base=Base(modes=(), people=hub.policy.people, routes=True),
            growth=parts,
            backlog=Backlog(hub.units, hub.clock, most=99),
        )
    )

    async def handle(lease: Lease) -> None:
        begun.append(lease)
        engine.drain()

    async with asyncio.TaskGroup() as group:
        storing = group.create_task(intake.run(), name="intake")
        await intake.accept(SOURCE, [trigger("ci.failed", thread="pr:1")])
        room.free = 99
        await parts.disk.look()
        with pytest.raises(DiskFullError):
            await intake.accept(SOURCE, [trigger("ci.failed", thread="pr:2")])
        with pytest.raises(DiskFullError):
            await intake.emit(SOURCE, [trigger("ci.failed", thread="pr:3")], "cursor")
        assert len(await hub.rows(TRIGGER)) == 1
        assert parts.unready() == {"disk": "it is nearly full: nothing new is taken in"}
        assert (await parts.gauges())["upright_disk_full"] == 1.0
        running = group.create_task(engine.run(handle), name="engine")
        for _ in range(20):  # turns of the loop: it has looked, and claimed nothing
            await hub.see(lambda c: None)
        assert begun == []
        room.free = 100
        await parts.disk.look()
        await running
        assert len(begun) == 1
        await intake.accept(SOURCE, [trigger("ci.failed", thread="pr:2")])
        storing.cancel()
    assert len(await hub.rows(TRIGGER)) == 2
    assert parts.unready() == {}


def test_retention_is_on_by_default_and_only_what_refuses_redeliveries_is_for_ever() -> None:
    keep = RetentionSection().keep()
    assert keep == Keep()
    ages = (keep.raw, keep.transcript, keep.output, keep.output_bytes, keep.events)
    assert min(*ages, keep.receipts, keep.ledger) > 0
    assert keep.dedupe == 0


@pytest.mark.parametrize("days", [1, 6, 29])
def test_dedupe_keys_never_go_before_what_may_come_again(days: int) -> None:
    with pytest.raises(ValueError, match="must not be below raw_days"):
        RetentionSection(dedupe_days=days)
