"""Placing: on which device, in which workspace, an item's commands run (E10).

A device runs its owner's items and those of the people it is shared with, nothing else. An item
stays where its worktree was made until a person moves it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.api import ActorKind, Channel
from upright.core.ids import DeviceId, SessionId
from upright.core.repository import same
from upright.core.wait import WaitKind, Wake
from upright.core.work import WorkItem
from upright.store import codec, devices, intake, jobs, relations, requests, waits, work
from upright.store.devices import ACTIVE, OPERATOR
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables import DEVICE, DEVICE_SHARE, PLACEMENT, TRIGGER, WORKSPACE
from upright.store.unit import Unit
from upright_wire.tools import lacking

NO_DEVICE: Final = "repository"
"""What an item waits for when no device may run it."""

EVERYBODY: Final = "*"
"""Whom a device is shared with that runs everybody's items."""

ADD: Final = "execd workspace add PATH"

# statements of the hot path are made once: building one costs more than running it
_ASKED: Final = sa.select(TRIGGER.c.actor_kind, TRIGGER.c.actor_id, TRIGGER.c.person).where(
    TRIGGER.c.id == sa.bindparam("trigger")
)
_SHARED: Final = (
    sa.select(DEVICE_SHARE.c.person)
    .where(DEVICE_SHARE.c.device_id == sa.bindparam("device"))
    .order_by(DEVICE_SHARE.c.person)
)
_PLACED: Final = sa.select(PLACEMENT).where(PLACEMENT.c.work_id == sa.bindparam("item"))
_ROWS: Final = (
    sa.select(
        WORKSPACE,
        DEVICE.c.name,
        DEVICE.c.owner,
        DEVICE.c.caps_json,
        DEVICE.c.helper_json,
        DEVICE.c.facts_json,
    )
    .join(DEVICE, DEVICE.c.id == WORKSPACE.c.device_id)
    .where(DEVICE.c.state == ACTIVE)
    .order_by(sa.func.coalesce(DEVICE.c.seen_at_ms, 0).desc(), WORKSPACE.c.path)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A workspace as a device announced it; ``tools`` are the programs that the device has."""

    path: str
    remotes: tuple[str, ...]
    label: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a repository is: a device, its name, the workspace's path there, what it can do.

    ``files`` is the argv prefix of its program for files; empty: it has none.
    """

    device: DeviceId
    name: str
    path: str
    caps: tuple[str, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Why an item's commands can't run anywhere, and the one command that mends it."""

    why: str
    remedy: str


# ------------------------------------------------------------------ whose
def principal(c: sa.Connection, item: WorkItem) -> str:
    """Return for whom an item is done: the member who asked for it, else whoever runs the hub.

    A child is for whom its parent is.
    """
    while (above := relations.parent(c, item.id)) is not None:
        item = above
    row = c.execute(_ASKED, {"trigger": item.trigger}).one_or_none()
    if row is None or row.actor_kind != ActorKind.MEMBER.value:
        return OPERATOR
    return str(row.person or row.actor_id)


def share(u: Unit, device: str, person: str) -> list[SessionId]:
    """Let a device run a person's items; return whom that wakes. Doing it twice is no error.

    Raises:
        UnknownIdError: there is no such device.
    """
    _must_be_paired(u.c, device)
    if person not in shared_with(u.c, device):
        row = {"device_id": device, "person": person, "added_at_ms": u.now_ms}
        u.c.execute(DEVICE_SHARE.insert(), row)
        record(u, "device.shared", About(), {"device": device, "with": person})
    return _wake_waiting(u, device)


def unshare(u: Unit, device: str, person: str) -> bool:
    """Run no new command of that person's items there; False: it was not shared with them."""
    mine = sa.and_(DEVICE_SHARE.c.device_id == device, DEVICE_SHARE.c.person == person)
    if u.c.execute(DEVICE_SHARE.delete().where(mine)).rowcount == 0:
        return False
    record(u, "device.unshared", About(), {"device": device, "with": person})
    return True


def shared_with(c: sa.Connection, device: str) -> list[str]:
    """List whom a device is shared with, sorted."""
    return list(c.scalars(_SHARED, {"device": device}))


def rename(u: Unit, device: str, name: str) -> None:
    """Call a device something else.

    Raises:
        UnknownIdError: there is no such device.
    """
    _must_be_paired(u.c, device)
    u.c.execute(DEVICE.update().where(DEVICE.c.id == device).values(name=name))
    record(u, "device.renamed", About(), {"device": device, "name": name})


def _must_be_paired(c: sa.Connection, device: str) -> None:
    known = devices.read(c, device)
    if known is None or known.state != ACTIVE:
        raise UnknownIdError(device)


# ------------------------------------------------------------------ workspaces
def announce(
    u: Unit, device: str, roots: Sequence[Root], files: Sequence[str] = ()
) -> list[SessionId]:
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
    known = json.loads(
        u.c.scalar(sa.select(DEVICE.c.facts_json).where(DEVICE.c.id == device)) or "{}"
    )
    known["tools"] = sorted({tool for root in roots for tool in root.tools})
    values = {
        "helper_json": codec.STRINGS.dump(tuple(files)),
        "facts_json": json.dumps(known, ensure_ascii=False),
    }
    u.c.execute(DEVICE.update().where(DEVICE.c.id == device).values(**values))
    return _wake_waiting(u, device)


def _wake_waiting(u: Unit, device: str) -> list[SessionId]:
    """Wake the items that waited for a device and have one now."""
    woken = []
    for item_id in waits.works_waiting(u.c, WaitKind.SYSTEM, NO_DEVICE):
        item = work.read(u.c, item_id)
        if isinstance(find(u.c, item), Absent):
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


# ------------------------------------------------------------------ where
def find(c: sa.Connection, item: WorkItem) -> Binding | Absent:
    """Find where an item's commands run; of several devices the one that was seen last."""
    urls = item.code.urls if item.code else ()
    name = item.code.repository if item.code else "this item's repository"
    having = [one for one in _rows(c) if same(urls, json.loads(one.remotes_json))]
    if not having:
        return Absent(why=f"No device has {name}. On the machine with a clone of it", remedy=ADD)
    whose = principal(c, item)
    mine = [one for one in having if _may_use(c, one, whose)]
    if not mine:
        first = having[0]
        why = f"{first.name} has {name}, and is not shared with {whose}. If it shall run it"
        return Absent(why=why, remedy=f"upright device share {first.device_id} --with {whose}")
    placed = c.execute(_PLACED, {"item": item.id}).one_or_none()
    if placed is None:
        return _binding(mine[0])
    there = [one for one in mine if (one.device_id, one.path) == (placed.device_id, placed.path)]
    if there:
        return _binding(there[0])
    why = f"The item's worktree is in {placed.path} on {placed.device_id}, which is not here any"
    remedy = f"upright work move {item.id} --to {mine[0].device_id}"
    return Absent(why=f"{why} more. To begin anew on {mine[0].name}", remedy=remedy)


def place(u: Unit, item: WorkItem, where: Binding) -> None:
    """Note where an item's worktree is: the first place stays."""
    if u.c.scalar(_PLACED, {"item": item.id}) is None:
        row = {
            "work_id": item.id,
            "device_id": where.device,
            "path": where.path,
            "placed_at_ms": u.now_ms,
        }
        u.c.execute(PLACEMENT.insert(), row)


def move(u: Unit, item: WorkItem, device: str) -> list[SessionId]:
    """Let an item go on at another device; what is missing there is said before anything runs.

    Raises:
        UnknownIdError: there is no such device.
        NotNowError: the device lacks the repository, a grant or a program that was used.
    """
    _must_be_paired(u.c, device)
    urls = item.code.urls if item.code else ()
    having = [one for one in _rows(u.c) if one.device_id == device]
    having = [one for one in having if same(urls, json.loads(one.remotes_json))]
    if not having:
        raise NotNowError(item.id, f"{device} has no clone of its repository; there: {ADD}")
    whose = principal(u.c, item)
    if not _may_use(u.c, having[0], whose):
        said = f"{device} is not shared with {whose}: upright device share {device} --with {whose}"
        raise NotNowError(item.id, said)
    if "exec" not in codec.STRINGS.load(having[0].caps_json):
        raise NotNowError(item.id, f"{device} was not granted to run commands")
    tools = json.loads(having[0].facts_json).get("tools")  # a device that tells none isn't judged
    if tools and (missing := lacking(jobs.programs(u.c, item.id), tools)):
        said = f"its commands used {', '.join(missing)}, and {device} has no such program"
        raise NotNowError(item.id, said)
    u.c.execute(PLACEMENT.delete().where(PLACEMENT.c.work_id == item.id))
    place(u, item, _binding(having[0]))
    record(u, "work.placed", About(work_id=item.id), {"device": device})
    return _wake_waiting(u, device)


def _rows(c: sa.Connection) -> list[sa.Row[tuple[object, ...]]]:
    return list(c.execute(_ROWS))


def _may_use(c: sa.Connection, row: sa.Row[tuple[object, ...]], person: str) -> bool:
    if row.owner == person:
        return True
    return not {person, EVERYBODY}.isdisjoint(shared_with(c, str(row.device_id)))


def _binding(row: sa.Row[tuple[object, ...]]) -> Binding:
    return Binding(
        device=DeviceId(row.device_id),
        name=row.name,
        path=row.path,
        caps=codec.STRINGS.load(row.caps_json),
        files=codec.STRINGS.load(row.helper_json),
    )
