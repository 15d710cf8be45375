"""Command queue as rows: which devices have something to be told, and what waits for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.ids import DeviceId
from upright.core.job import Job, JobState
from upright.store import device_requests, jobs
from upright.store.tables import DEVICE, JOB
from upright.store.unit import Unit

MOST_FOREIGN: Final = 100

# statements of the hot path are made once: building one costs more than running it
_BUSY: Final = sa.select(JOB.c.device_id).where(JOB.c.settled.is_(False)).distinct()
_WAITING: Final = sa.select(sa.func.count()).where(
    JOB.c.device_id == sa.bindparam("device"),
    JOB.c.settled.is_(False),
    JOB.c.state == JobState.QUEUED.value,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a device is to be told of, oldest first; with ``holds_new`` nothing new may leave."""

    jobs: tuple[Job, ...]
    holds_new: bool


def busy_devices(c: sa.Connection) -> set[DeviceId]:
    """Return the devices that have commands which are not settled."""
    return {DeviceId(device) for device in c.scalars(_BUSY)}


def due(c: sa.Connection, device: str) -> Due:
    """Read what is not settled at a device."""
    found = tuple(jobs.unsettled(c, device))
    return Due(jobs=found, holds_new=bool(found) and device_requests.is_suspected(c, device))


def waiting(c: sa.Connection, device: str) -> int:
    """Count the commands of a device that have not begun."""
    return int(c.scalar(_WAITING, {"device": device}) or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A command that a device holds and no row knows: another hub's, or of a lost database."""

    command: str
    state: str


def note_foreign(u: Unit, device: str, found: Sequence[Foreign]) -> None:
    """Keep what is foreign on a device, to be shown; it is never ended from here (E7)."""
    listed = [{"command": one.command, "state": one.state} for one in found[:MOST_FOREIGN]]
    said = json.dumps(listed)
    changed = sa.and_(DEVICE.c.id == device, DEVICE.c.foreign_json != said)
    u.c.execute(DEVICE.update().where(changed).values(foreign_json=said))
