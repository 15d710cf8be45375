"""Devices as rows: pairing requests, and pinned keys (their workspaces: ``placing``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core import request as machine
from upright.core.ids import DeviceId, SessionId
from upright.core.request import RequestKind, RequestState
from upright.store import codec, device_requests, jobs
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
