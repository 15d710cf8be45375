"""Restoring: a backup becomes the database, whole or not at all; nothing is sent a second time.

The old database is good until the last step: one rename of a file, or one commit on a server.
Everything here blocks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from upright.core.job import TERMINAL
from upright.core.outbox import OutboxState, Uncertain
from upright.store import copying, outbox, schema
from upright.store.address import Address, Server
from upright.store.backup import Unpacked, unpacked
from upright.store.errors import BackupError
from upright.store.events import About, record
from upright.store.guard import Guard
from upright.store.hold import take
from upright.store.outbox import Setback
from upright.store.spill import Spill
from upright.store.tables import DEVICE, JOB, OUTBOX, SESSION, TRIGGER
from upright.store.unit import Unit

_LEFT_OUT: Final = (
    "A backup has no upright.toml, no hub.key and no api.token: keep those yourself. Without its "
    "hub.key a hub is a stranger to its devices, and each must be paired again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """What is restored to where. ``replace``: what is there goes. ``swapping`` is called last.

    ``spill`` is where the spilled payloads belong; None puts them into their rows.
    """

    file: Path
    where: Address
    spill: Spill | None
    replace: bool
    now_ms: int
    new_id: Callable[[str], str]
    swapping: Callable[[], None] = lambda: None


def restore(job: Restoring) -> list[str]:
    """Put a backup in the place of a database; return what follows from that, in sentences.

    Raises:
        BackupError: the file is none of ours or broken, or there are rows already.
        StoreInUseError: a hub runs on the database.
        StoreUnavailableError: the server can't be reached.
        FileNotFoundError: there is no such file.
    """
    near = job.where if isinstance(job.where, Path) else job.file
    beside = near.resolve().parent
    beside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with unpacked(job.file, beside) as found:
        said = copying.change(found.database, partial(_doubt, job=job, found=found))
        if isinstance(job.where, Path):
            _into_file(job, job.where.resolve(), found)
        else:
            _into_server(job, job.where, found)
    return said


def _doubt(c: sa.Connection, *, job: Restoring, found: Unpacked) -> list[str]:
    """Make the rows true again: what may have happened since they were copied is in doubt."""
    u = Unit(c, job.now_ms, job.new_id)
    made = datetime.fromtimestamp(found.manifest.made_at_ms / 1000, UTC)
    since = f"{made:%Y-%m-%d %H:%M} UTC"
    waiting = OUTBOX.c.state.in_([OutboxState.PENDING.value, OutboxState.SENDING.value])
    doubtful = list(c.scalars(sa.select(OUTBOX.c.id).where(waiting).order_by(OUTBOX.c.id)))
    c.execute(OUTBOX.update().where(waiting).values(state=OutboxState.SENDING.value))
    reason = f"it was restored from a backup of {since}, and may have been sent since"
    for one in doubtful:
        setback = Setback(event=Uncertain(), reason=reason)
        outbox.set_back(u, outbox.read(c, one), setback)
    c.execute(SESSION.update().values(lease_until_ms=None))
    running = _count(c, JOB, JOB.c.state.not_in([state.value for state in TERMINAL]))
    devices = _count(c, DEVICE, DEVICE.c.state == "active")
    record(u, "db.restored", About(), {"made_at_ms": found.manifest.made_at_ms})
    said = (
        f"This is the hub as it was at {since}.",
        f"""Effects: {len(doubtful)} waited to be sent. They may have been sent since, so they are
        unknown now, and nothing is sent by itself: see `upright outbox ls`.""",
        "Receipts: of what was sent since there is none, so the hub may not know its own messages.",
        """Events: what came since is gone. Sources that can list bring it again, webhooks do not;
        what refuses a second delivery is as it was then.""",
        f"Jobs: {running} had not ended; their devices say what became of them.",
        f"""Devices: {devices} are trusted. One that was paired since must be paired again, and one
        that was revoked since is trusted again: `upright device ls`.""",
        _LEFT_OUT,
    )
    return [" ".join(sentence.split()) for sentence in said]


def _count(c: sa.Connection, table: sa.Table, *where: sa.ColumnElement[bool]) -> int:
    return int(c.scalar(sa.select(sa.func.count()).select_from(table).where(*where)) or 0)


def _refuse_rows(c: sa.Connection, job: Restoring) -> None:
    triggers, sessions = _count(c, TRIGGER), _count(c, SESSION)
    if triggers or sessions or _count(c, DEVICE):
        there = f"{job.where} holds {triggers} triggers and {sessions} sessions"
        raise BackupError(str(job.file), f"{there}; --replace puts the backup in their place")


# ------------------------------------------------------------------ into a file
def _into_file(job: Restoring, path: Path, found: Unpacked) -> None:
    with Guard(path):
        if path.is_file() and not job.replace:
            copying.look(path, lambda c: _refuse_rows(c, job))
        if job.spill is not None:
            for named in found.spill.names():
                job.spill.keep(found.spill.read(named))
        if path.is_file():
            _settle_log(path)
        job.swapping()
        found.database.replace(path)


def _settle_log(path: Path) -> None:
    """Bring the old file's log into it: left behind, it would be read into the new one.

    Of a file that is broken nothing can be saved: its log goes first.
    """
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.DatabaseError:
        pass
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


# ------------------------------------------------------------------ onto a server
def _into_server(job: Restoring, server: Server, found: Unpacked) -> None:
    def put(target: sa.Connection) -> None:
        if not schema.fill(target, where=server):
            take(target, server)
            schema.require(server, schema.revision(target))
            if not job.replace:
                _refuse_rows(target, job)
            copying.empty(target)
        copying.look(found.database, lambda c: copying.rows(c, target, found.spill.read))
        copying.count_on(target)
        job.swapping()

    schema.on_server(server, put)
