"""Devices as they are shown: whose, where which repository is, what waits, what is foreign."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from upright.core.job import JobState
from upright.core.repository import key
from upright.core.request import RequestKind, RequestState
from upright.store import placing
from upright.store.plain import Plain, columns, listed, one
from upright.store.tables import DEVICE, JOB, REQUEST, WORKSPACE

_LISTED: Final = columns(DEVICE, without=["public_key", "helper_json"])
_UNSETTLED: Final = JOB.c.settled.is_(False)


def devices(c: sa.Connection) -> list[Plain]:
    """List the devices by name.

    Each has its ``workspaces`` (with ``repositories``), ``shared_with``, and how many commands are
    ``queued`` and ``under_way``.
    """
    live = sa.select(JOB.c.device_id, JOB.c.state).where(_UNSETTLED, JOB.c.ended_at_ms.is_(None))
    counts = Counter(
        (str(row.device_id), row.state == JobState.QUEUED.value) for row in c.execute(live)
    )
    chosen = sa.select(*_LISTED).order_by(DEVICE.c.name, DEVICE.c.id)
    return [_shown(c, device, counts) for device in listed(c, chosen)]


def device(c: sa.Connection, wanted: str) -> Plain:
    """Return one device with its ``commands`` (that are not settled) and open ``questions``.

    Raises:
        UnknownIdError: there is none.
    """
    found = one(c, DEVICE, wanted)
    (shown,) = [row for row in devices(c) if row["id"] == wanted]
    mine = sa.select(
        JOB.c.id, JOB.c.state, JOB.c.work_id, JOB.c.spec_json, JOB.c.created_at_ms
    ).where(JOB.c.device_id == wanted, _UNSETTLED)
    commands = listed(c, mine.order_by(JOB.c.created_at_ms, JOB.c.id))
    for command in commands:
        command["argv"] = command.pop("spec")["argv"]
    asked = sa.select(REQUEST).where(
        REQUEST.c.kind == RequestKind.DEVICE.value,
        REQUEST.c.state == RequestState.ASKED.value,
        REQUEST.c.subject_json.contains(wanted),
    )
    questions = [
        {"id": row["id"], "prompt": row["prompt"]}
        for row in listed(c, asked.order_by(REQUEST.c.created_at_ms))
    ]
    files = found["helper"]
    return {**shown, "commands": commands, "questions": questions, "has_files": bool(files)}


def _shown(c: sa.Connection, device: Plain, counts: Counter[tuple[str, bool]]) -> Plain:
    mine = sa.select(WORKSPACE).where(WORKSPACE.c.device_id == device["id"])
    rooms = listed(c, mine.order_by(WORKSPACE.c.path))
    for room in rooms:
        room["repositories"] = sorted({key(remote) for remote in room["remotes"]} - {""})
    return {
        **device,
        "workspaces": rooms,
        "shared_with": placing.shared_with(c, device["id"]),
        "queued": counts[device["id"], True],
        "under_way": counts[device["id"], False],
    }


def held_back(c: sa.Connection, jobs: Collection[str]) -> defaultdict[str, Plain]:
    """Say of those *jobs* that have not begun for which device they wait.

    Each has ``device``, ``name``, ``seen_at_ms`` and ``suspected_at_ms``; a job that has begun has
    nothing.
    """
    chosen = (
        sa.select(
            JOB.c.id.label("job"),
            DEVICE.c.id.label("device"),
            DEVICE.c.name,
            DEVICE.c.seen_at_ms,
            DEVICE.c.suspected_at_ms,
        )
        .join(DEVICE, DEVICE.c.id == JOB.c.device_id)
        .where(JOB.c.id.in_(jobs), JOB.c.state == JobState.QUEUED.value)
    )
    found: defaultdict[str, Plain] = defaultdict(dict)
    found.update({row.pop("job"): row for row in listed(c, chosen)})
    return found


def held_by(wait: Plain, held: Plain, online: Collection[str]) -> Plain:
    """Say of a wait for a job that has not begun what the job itself waits for."""
    if not held:
        return wait
    name, device = held["name"], held["device"]
    if device not in online:
        said = f"{name} to come online"
    elif held["suspected_at_ms"] is not None:
        said = f"a person to say whether {name} is to be trusted"
    else:
        said = f"a place on {name}"
    return {**wait, "held_by": said, "device": device, "device_seen_at_ms": held["seen_at_ms"]}
