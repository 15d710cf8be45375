"""Device requests: what only a person settles about a paired device (E1.4, E2.3).

A device that offers more than was granted goes on with the old set; one whose key two machines seem
to use runs what runs and is sent nothing new. Either is one open request, however often it links.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.core.ids import DeviceId
from upright.core.request import RequestKind, RequestState
from upright.store import codec, requests
from upright.store.errors import NotNowError
from upright.store.events import About, record
from upright.store.requests import Asked, Asking
from upright.store.tables import DEVICE, REQUEST
from upright.store.unit import Unit

_ONE: Final = DEVICE.c.id == sa.bindparam("device")
_SUSPECTED: Final = sa.select(DEVICE.c.suspected_at_ms).where(_ONE)


class Matter(StrEnum):
    """What a request about a device is for."""

    CAPS = "caps"
    CLONE = "clone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a device says of itself when it links; *wider* are capabilities that it lacks here."""

    device: str
    remote: str
    wider: tuple[str, ...]


def seen(u: Unit, sight: Sight) -> None:
    """Note that a device linked; ask a person about capabilities that it did not offer before."""
    row = u.c.execute(sa.select(DEVICE).where(DEVICE.c.id == sight.device)).one_or_none()
    if row is None:
        return
    wider = tuple(sorted(set(sight.wider)))
    known = codec.STRINGS.load(row.offered_json)
    changed = {
        "seen_at_ms": u.now_ms,
        "remote": sight.remote,
        "offered_json": codec.STRINGS.dump(wider),
    }
    u.c.execute(DEVICE.update().where(DEVICE.c.id == sight.device).values(changed))
    if wider != known:
        _withdraw(u.c, Matter.CAPS, sight.device)
        if wider:
            words = ", ".join(_quoted(wider))
            _ask(u, Matter.CAPS, sight.device, f"{_named(row)} can do more now: {words}. Allow it?")


def suspect(u: Unit, device: str) -> bool:
    """Hold back new commands: two machines seem to use this key. False: that was known."""
    fresh = sa.and_(DEVICE.c.id == device, DEVICE.c.suspected_at_ms.is_(None))
    if u.c.execute(DEVICE.update().where(fresh).values(suspected_at_ms=u.now_ms)).rowcount == 0:
        return False
    row = u.c.execute(sa.select(DEVICE).where(DEVICE.c.id == device)).one()
    record(u, "device.suspected", About(), {"device": device})
    prompt = (
        f"Two machines seem to use the key of {_named(row)}: its links replace each other, the last"
        f" from {json.dumps(row.remote)}. New commands wait. Approve to trust it again; if it is no"
        f" machine of yours: upright device revoke {device}"
    )
    _ask(u, Matter.CLONE, device, prompt)
    return True


def is_suspected(c: sa.Connection, device: str) -> bool:
    """Say whether new commands for this device wait for a person."""
    return c.scalar(_SUSPECTED, {"device": device}) is not None


def decide(u: Unit, asked: Asked, by: str, *, approve: bool) -> DeviceId:
    """Settle a request about a device; return the device, which may have something to be sent.

    A no leaves everything as it is: the old capabilities, the commands that wait.

    Raises:
        NotNowError: the device offers something else meanwhile, or its time has passed.
        IllegalMoveError: it is settled already.
    """
    subject = json.loads(asked.subject_json)
    device, matter = DeviceId(subject["device"]), Matter(subject["matter"])
    row = u.c.execute(sa.select(DEVICE).where(DEVICE.c.id == device)).one_or_none()
    if row is None or _digest(matter, device, row.offered_json) != asked.digest:
        raise NotNowError(asked.id, "the device is not what was shown; look at it again")
    requests.answer(u, asked, "approved" if approve else "denied", by)
    if approve:
        changed: dict[str, object] = {"suspected_at_ms": None}
        if matter is Matter.CAPS:
            offered = codec.STRINGS.load(row.offered_json)
            caps = sorted({*codec.STRINGS.load(row.caps_json), *offered})
            changed = {"caps_json": codec.STRINGS.dump(tuple(caps)), "offered_json": "[]"}
        u.c.execute(DEVICE.update().where(DEVICE.c.id == device).values(changed))
    verdict = "approved" if approve else "denied"
    record(u, f"device.{matter}_{verdict}", About(), {"device": device, "by": by})
    return device


def withdraw_all(c: sa.Connection, device: str) -> None:
    """Withdraw whatever is asked about a device: it was revoked."""
    for matter in Matter:
        _withdraw(c, matter, device)


def _ask(u: Unit, matter: Matter, device: str, prompt: str) -> None:
    offered = u.c.scalar(sa.select(DEVICE.c.offered_json).where(DEVICE.c.id == device)) or "[]"
    asking = Asking(
        kind=RequestKind.DEVICE,
        prompt=prompt,
        digest=_digest(matter, device, offered),
        subject_json=_subject(matter, device),
    )
    requests.ask(u, asking)


def _withdraw(c: sa.Connection, matter: Matter, device: str) -> None:
    mine = sa.and_(
        REQUEST.c.kind == RequestKind.DEVICE.value,
        REQUEST.c.subject_json == _subject(matter, device),
        REQUEST.c.state == RequestState.ASKED.value,
    )
    c.execute(REQUEST.update().where(mine).values(state=RequestState.WITHDRAWN.value))


def _subject(matter: Matter, device: str) -> str:
    return json.dumps({"device": device, "matter": matter.value})


def _digest(matter: Matter, device: str, offered_json: str) -> str:
    """Return what an answer binds: of wider capabilities, exactly which."""
    what = offered_json if matter is Matter.CAPS else ""
    return hashlib.sha256(f"{matter}\n{device}\n{what}".encode()).hexdigest()


def _named(row: sa.Row[tuple[object, ...]]) -> str:
    return f"{json.dumps(row.name)} ({row.id})"


def _quoted(words: Sequence[str]) -> list[str]:
    return [json.dumps(word[:64]) for word in words[:64]]
