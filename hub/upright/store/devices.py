"""Devices as rows: pairing requests, pinned keys, and the workspaces that bind repositories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.api import Channel
from upright.core import request as machine
from upright.core.ids import DeviceId, SessionId
from upright.core.repository import same
from upright.core.request import RequestKind, RequestState
from upright.core.wait import WaitKind, Wake
from upright.store import codec, device_requests, intake, jobs, requests, waits, work
from upright.store.events import About, record
from upright.store.tables import DEVICE, REQUEST, WORKSPACE
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Started

ACTIVE = "active"
REVOKED = "revoked"
OPERATOR: Final = "operator"
"""The owner of what nobody else owns: whoever runs this hub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A paired device; ``caps`` are those that a person granted, ``owner`` whose it is."""

    id: DeviceId
    name: str
    public_key: bytes
    state: str
    caps: tuple[str, ...]
    owner: str = OPERATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A workspace as a device announced it."""

    path: str
    remotes: tuple[str, ...]
    label: str = ""


# ------------------------------------------------------------------ paired devices
def read(c: sa.Connection, device: str) -> Device | None:
    """Read a device, revoked or not."""
    row = c.execute(sa.select(DEVICE).where(DEVICE.c.id == device)).one_or_none()
    if row is None:
        return None
    return Device(
        id=DeviceId(row.id),
        name=row.name,
        public_key=row.public_key,
        state=row.state,
        caps=codec.STRINGS.load(row.caps_json),
        owner=row.owner,
    )


def add(u: Unit, device: Device, facts_json: str, *, declined: Sequence[str] = ()) -> None:
    """Pin a device; the same key again replaces what was known under it.

    What a person has *declined* is not asked about again.
    """
    u.c.execute(DEVICE.delete().where(DEVICE.c.public_key == device.public_key))
    u.c.execute(
        DEVICE.insert().values(
            id=device.id,
            name=device.name,
            public_key=device.public_key,
            state=device.state,
            owner=device.owner,
            caps_json=codec.STRINGS.dump(device.caps),
            offered_json=codec.STRINGS.dump(tuple(sorted(declined))),
            helper_json="[]",
            foreign_json="[]",
            remote="",
            facts_json=facts_json,
            approved_at_ms=u.now_ms,
        )
    )
    record(u, "device.paired", About(), {"device": device.id, "name": device.name})


def revoke(u: Unit, device: str) -> list[SessionId] | None:
    """Take a device's right away; its live commands are lost to us, and their sessions are told.

    None: it is no paired device, or was revoked before.
    """
    mine = sa.and_(DEVICE.c.id == device, DEVICE.c.state == ACTIVE)
    if u.c.execute(DEVICE.update().where(mine).values(state=REVOKED)).rowcount == 0:
        return None
    u.c.execute(WORKSPACE.delete().where(WORKSPACE.c.device_id == device))
    device_requests.withdraw_all(u.c, device)
    record(u, "device.revoked", About(), {"device": device})
    live = [job for job in jobs.unsettled(u.c, device) if not job.over]
    for job in live:
        began = Started.YES if job.started == Started.YES.value else Started.UNKNOWN
        started = began if job.sent else Started.NO
        lost = Outcome(ending=Ending.LOST, started=started, text="the device was revoked")
        jobs.end(u, job, lost)
        jobs.mark_settled(u.c, job.id)
    return [job.session for job in live]


# ------------------------------------------------------------------ pairing requests
@dataclass(frozen=True, slots=True, kw_only=True)
class PairingRow:
    """A pairing request; ``subject_json`` is the devices shelf's own."""

    id: str
    key: str
    state: RequestState
    subject_json: str
    expires_at_ms: int


def add_pairing(u: Unit, row: PairingRow) -> None:
    """Keep a request; an older open one of the same key is withdrawn."""
    older = sa.and_(
        REQUEST.c.kind == RequestKind.PAIRING.value,
        REQUEST.c.digest == row.key,
        REQUEST.c.state == RequestState.ASKED.value,
    )
    u.c.execute(REQUEST.update().where(older).values(state=RequestState.WITHDRAWN.value))
    u.c.execute(
        REQUEST.insert().values(
            id=row.id,
            kind=RequestKind.PAIRING.value,
            state=row.state.value,
            prompt="a device asks to be paired",
            subject_json=row.subject_json,
            digest=row.key,
            answer="",
            answered_by="",
            created_at_ms=u.now_ms,
            expires_at_ms=row.expires_at_ms,
        )
    )
    record(u, "pairing.asked", About(), {"request": row.id})


def pairings(c: sa.Connection, *, request: str | None = None) -> list[PairingRow]:
    """Read one pairing request in any state, or all that are open."""
    wanted = sa.select(REQUEST).where(REQUEST.c.kind == RequestKind.PAIRING.value)
    if request is None:
        wanted = wanted.where(REQUEST.c.state == RequestState.ASKED.value)
    else:
        wanted = wanted.where(REQUEST.c.id == request)
    return [
        PairingRow(
            id=row.id,
            key=row.digest,
            state=RequestState(row.state),
            subject_json=row.subject_json,
            expires_at_ms=row.expires_at_ms,
        )
        for row in c.execute(wanted.order_by(REQUEST.c.created_at_ms))
    ]


def save_subject(c: sa.Connection, request: str, subject_json: str) -> None:
    """Store what changed in a pairing request."""
    c.execute(REQUEST.update().where(REQUEST.c.id == request).values(subject_json=subject_json))


def settle_pairing(u: Unit, row: PairingRow, event: machine.RequestEvent, by: str) -> None:
    """End a pairing request by the table; IllegalMoveError once it is settled."""
    state = machine.step(row.state, event)
    u.c.execute(
        REQUEST.update().where(REQUEST.c.id == row.id).values(state=state.value, answered_by=by)
    )
    record(u, f"pairing.{state.value}", About(), {"request": row.id, "by": by})


# ------------------------------------------------------------------ workspaces
def announce(u: Unit, device: str, roots: Sequence[Root]) -> list[SessionId]:
    """Replace a device's workspaces; wake what waited for one of their repositories."""
    u.c.execute(WORKSPACE.delete().where(WORKSPACE.c.device_id == device))
    for root in {root.path: root for root in roots}.values():  # the last word on a path counts
        u.c.execute(
            WORKSPACE.insert().values(
                device_id=device,
                path=root.path,
                remotes_json=codec.STRINGS.dump(root.remotes),
                label=root.label,
            )
        )
    woken = []
    for item_id in waits.works_waiting(u.c, WaitKind.SYSTEM, NO_DEVICE):
        item = work.read(u.c, item_id)
        if item.code is None or place_of(u.c, item.code.urls) is None:
            continue
        met = waits.settle(u.c, item.id, Wake(kind=WaitKind.SYSTEM, ref=NO_DEVICE)).wait
        if met is not None:  # the question is what the wait is for; others stay open
            requests.withdraw(u.c, work=item.id, prompt=met.why)
        notice = intake.Notice(
            kind="device.ready",
            channel=Channel.DEVICE,
            title="a device has the repository now",
            text="",
            dedupe=(f"device:{device}:{item.id}:{item.generation}",),
            facts=(("device", device),),
        )
        intake.notify(u, item.session, item.thread, notice)
        woken.append(item.session)
    return woken


NO_DEVICE = "repository"
"""What an item waits for when no device has its repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a repository is: a device, its name, and the workspace's path there."""

    device: DeviceId
    name: str
    path: str
    caps: tuple[str, ...]


def place_of(c: sa.Connection, urls: Sequence[str]) -> Binding | None:
    """Find the workspace of a repository; the device that was seen last, then the first path."""
    rows = c.execute(
        sa.select(WORKSPACE, DEVICE.c.name, DEVICE.c.caps_json)
        .join(DEVICE, DEVICE.c.id == WORKSPACE.c.device_id)
        .where(DEVICE.c.state == ACTIVE)
        .order_by(sa.func.coalesce(DEVICE.c.seen_at_ms, 0).desc(), WORKSPACE.c.path)
    )
    for row in rows:
        if same(urls, json.loads(row.remotes_json)):
            return Binding(
                device=DeviceId(row.device_id),
                name=row.name,
                path=row.path,
                caps=codec.STRINGS.load(row.caps_json),
            )
    return None
