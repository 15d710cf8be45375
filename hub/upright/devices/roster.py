"""Roster: devices and pairing requests in the store, as links and pairing ask for them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from upright.core import request as machine
from upright.core.ids import DeviceId
from upright.core.request import RequestState
from upright.devices.ports import Approval, DeviceState, KnownDevice, Pairing, Sighting
from upright.engine.units import Units
from upright.store import device_requests, devices
from upright.store.device_requests import Sight
from upright.store.devices import Device, PairingRow
from upright.store.unit import Unit
from upright_wire.frames import Facts
from upright_wire.plain import to_plain


class StoredRoster:
    """The paired devices, as rows."""

    def __init__(self, units: Units) -> None:
        self._units = units

    async def device(self, device_id: str) -> KnownDevice | None:
        """Return the device with this id, revoked or not."""
        found = await self._units.read(lambda c: devices.read(c, device_id))
        if found is None:
            return None
        return KnownDevice(
            id=found.id,
            public_key=found.public_key,
            state=DeviceState(found.state),
            caps=found.caps,
        )

    async def seen(self, sighting: Sighting) -> None:
        """Note that it linked, and ask a person about what it offers beyond its grant."""
        sight = Sight(device=sighting.device_id, remote=sighting.remote, wider=sighting.wider_caps)
        await self._units.write(lambda u: device_requests.seen(u, sight))

    async def suspect(self, device_id: str) -> None:
        """Hold back new commands until a person has looked."""
        await self._units.write(lambda u: device_requests.suspect(u, device_id))


class StoredPairings:
    """Pairing requests, as rows; each call is one transaction."""

    def __init__(self, units: Units) -> None:
        self._units = units

    async def add(self, pairing: Pairing) -> None:
        """Keep a new request; an older one of the same key that is still ASKED is withdrawn."""
        row = PairingRow(
            id=pairing.id,
            key=pairing.device_key.hex(),
            state=pairing.state,
            subject_json=_dump(pairing),
            expires_at_ms=int(pairing.expires_at.timestamp() * 1000),
        )
        await self._units.write(lambda u: devices.add_pairing(u, row))

    async def find(self, request_id: str) -> Pairing | None:
        """Return a request in any state."""
        rows = await self._units.read(lambda c: devices.pairings(c, request=request_id))
        return _load(rows[0]) if rows else None

    async def asked(self) -> tuple[Pairing, ...]:
        """Return the requests that wait for a person, expired ones too."""
        return tuple(_load(row) for row in await self._units.read(devices.pairings))

    async def approve(self, approval: Approval) -> bool:
        """Answer the request and add the device; False when it is not ASKED or its hash differs."""
        return await self._units.write(lambda u: _approve(u, approval))

    async def settle(self, request_id: str, state: RequestState, *, by: str = "") -> None:
        """End a request that is ASKED; harmless when it is settled."""
        events: dict[RequestState, machine.RequestEvent] = {
            RequestState.ANSWERED: machine.Answered(),
            RequestState.EXPIRED: machine.TimePassed(),
            RequestState.WITHDRAWN: machine.Withdrawn(),
        }

        def unit(u: Unit) -> None:
            for row in devices.pairings(u.c, request=request_id):
                if row.state is RequestState.ASKED:
                    devices.settle_pairing(u, row, events[state], by)

        await self._units.write(unit)

    async def count_wrong_guess(self) -> None:
        """Add a wrong guess to every ASKED request."""

        def unit(u: Unit) -> None:
            for row in devices.pairings(u.c):
                pairing = _load(row)
                counted = replace(pairing, wrong_guesses=pairing.wrong_guesses + 1)
                devices.save_subject(u.c, row.id, _dump(counted))

        await self._units.write(unit)


def _approve(u: Unit, approval: Approval) -> bool:
    rows = devices.pairings(u.c, request=approval.request_id)
    if not rows or rows[0].state is not RequestState.ASKED:
        return False
    pairing = _load(rows[0])
    if pairing.bound_hash != approval.bound_hash:
        return False
    devices.settle_pairing(u, rows[0], machine.Answered(), approval.by)
    agreed = replace(pairing, device_id=approval.device_id, granted=approval.granted)
    devices.save_subject(u.c, pairing.id, _dump(agreed))
    device = Device(
        id=DeviceId(approval.device_id),
        name=pairing.facts.hostname,
        public_key=pairing.device_key,
        state=DeviceState.ACTIVE.value,
        caps=approval.granted,
        owner=approval.by,
    )
    declined = tuple(cap for cap in pairing.caps if cap not in approval.granted)
    devices.add(u, device, json.dumps(to_plain(pairing.facts)), declined=declined)
    return True


def _dump(pairing: Pairing) -> str:
    """Write a pairing, but for what has columns of its own."""
    return json.dumps(
        {
            "code": pairing.code,
            "digits": pairing.digits,
            "bound_hash": pairing.bound_hash,
            "host": pairing.host,
            "remote": pairing.remote,
            "caps": list(pairing.caps),
            "facts": to_plain(pairing.facts),
            "wrong_guesses": pairing.wrong_guesses,
            "device_id": pairing.device_id,
            "granted": list(pairing.granted),
        },
        ensure_ascii=False,
    )


def _load(row: PairingRow) -> Pairing:
    subject: dict[str, Any] = json.loads(row.subject_json)
    return Pairing(
        id=row.id,
        code=subject["code"],
        digits=subject["digits"],
        bound_hash=subject["bound_hash"],
        device_key=bytes.fromhex(row.key),
        host=subject["host"],
        remote=subject["remote"],
        caps=tuple(subject["caps"]),
        facts=Facts(**subject["facts"]),
        expires_at=datetime.fromtimestamp(row.expires_at_ms / 1000, UTC),
        state=row.state,
        wrong_guesses=subject["wrong_guesses"],
        device_id=subject["device_id"],
        granted=tuple(subject["granted"]),
    )
