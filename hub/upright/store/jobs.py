"""Jobs as rows: queued for a device, begun, filled with output, ended once (B10, E4)."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.api import Channel
from upright.core import job as machine
from upright.core.ids import DeviceId, JobId, SessionId, WorkId
from upright.core.job import TERMINAL, Job, JobState
from upright.core.wait import WaitKind, Wake
from upright.store import intake, output, waits, watches, work
from upright.store.errors import UnknownIdError
from upright.store.events import About, record
from upright.store.ledger import Cost, charge
from upright.store.tables import JOB
from upright.store.unit import Unit
from upright_wire.command import Ending, Outcome, Started
from upright_wire.plain import to_plain

_LIVE = tuple(state.value for state in JobState if state not in TERMINAL)
_ONE: Final = JOB.c.id == sa.bindparam("of_job")

# statements of the hot path are made once: building one costs more than running it
_ADD: Final = JOB.insert()
_FIND: Final = sa.select(JOB).where(_ONE)
_DEVICE: Final = sa.select(JOB.c.device_id).where(_ONE)
_UNSETTLED: Final = (
    sa.select(JOB)
    .where(JOB.c.device_id == sa.bindparam("device"), JOB.c.settled.is_(False))
    .order_by(JOB.c.created_at_ms, JOB.c.id)
)
_BRIEFS: Final = (
    sa.select(JOB.c.id, JOB.c.call_id, JOB.c.state)
    .where(JOB.c.session_id == sa.bindparam("session"))
    .order_by(JOB.c.created_at_ms, JOB.c.id)
)
_SENT: Final = JOB.update().where(_ONE, JOB.c.state == JobState.QUEUED.value).values(sent=True)
_OF_SESSION: Final = (
    sa.select(JOB)
    .where(JOB.c.session_id == sa.bindparam("session"))
    .order_by(JOB.c.created_at_ms, JOB.c.id)
)
_TWIN: Final = (
    sa.select(JOB)
    .where(
        JOB.c.session_id == sa.bindparam("session"),
        JOB.c.digest == sa.bindparam("same"),
        sa.or_(*(JOB.c.state == state for state in _LIVE)),
    )
    .limit(1)
)
_BACKGROUND: Final = JOB.update().where(_ONE).values(background=True)
_REPORTED: Final = JOB.update().where(_ONE).values(reported=True)
_SETTLED: Final = JOB.update().where(_ONE).values(settled=True)
_BEGAN: Final = (
    JOB.update()
    .where(_ONE)
    .values(
        state=sa.bindparam("state"),
        started=sa.bindparam("started"),
        started_at_ms=sa.bindparam("started_at_ms"),
    )
)
_END: Final = (
    JOB.update()
    .where(_ONE)
    .values(
        state=sa.bindparam("state"),
        outcome=sa.bindparam("outcome"),
        code=sa.bindparam("code"),
        started=sa.bindparam("started"),
        detail_json=sa.bindparam("detail_json"),
        ended_at_ms=sa.bindparam("ended_at_ms"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command to be queued: for which call of which session, under which lease epoch."""

    session: str
    work: str
    call_id: str
    device: str
    spec_json: str
    digest: str
    stdin: bytes
    epoch: int
    background: bool
    turn: str


def queue(u: Unit, order: Order) -> JobId:
    """Store a command; the device is sent it after the commit."""
    made = JobId(u.new_id("job"))
    row = {
        "id": made,
        "session_id": order.session,
        "work_id": order.work,
        "call_id": order.call_id,
        "turn_id": order.turn,
        "device_id": order.device,
        "state": JobState.QUEUED.value,
        "spec_json": order.spec_json,
        "digest": order.digest,
        "stdin_bytes": len(order.stdin),
        "background": order.background,
        "epoch": order.epoch,
        "outcome": "",
        "started": Started.NO.value,
        "detail_json": "{}",
        "sent": False,
        "settled": False,
        "reported": False,
        "stdout_bytes": 0,
        "stderr_bytes": 0,
        "created_at_ms": u.now_ms,
    }
    u.c.execute(_ADD, row)
    output.give(u.c, made, order.stdin)
    about = About(session_id=order.session, work_id=order.work, turn_id=order.turn, job_id=made)
    record(u, "command.queued", about, {"device": order.device})
    return made


def _about(job: Job) -> About:
    return About(session_id=job.session, work_id=job.work, turn_id=job.turn, job_id=job.id)


def find(c: sa.Connection, job: str) -> Job | None:
    """Read a job, if there is one."""
    row = c.execute(_FIND, {"of_job": job}).one_or_none()
    return None if row is None else _read(row)


def device_of(c: sa.Connection, job: str) -> DeviceId | None:
    """Return the device that a job is for; None when there is no such job."""
    found: str | None = c.scalar(_DEVICE, {"of_job": job})
    return None if found is None else DeviceId(found)


def read(c: sa.Connection, job: str) -> Job:
    """Read a job; UnknownIdError when there is none."""
    found = find(c, job)
    if found is None:
        raise UnknownIdError(job)
    return found


def _read(row: sa.Row[tuple[object, ...]]) -> Job:
    return Job(
        id=JobId(row.id),
        session=SessionId(row.session_id),
        work=WorkId(row.work_id),
        call_id=row.call_id,
        turn=row.turn_id,
        device=DeviceId(row.device_id),
        state=JobState(row.state),
        spec_json=row.spec_json,
        digest=row.digest,
        stdin_bytes=row.stdin_bytes,
        background=row.background,
        epoch=row.epoch,
        outcome=row.outcome,
        code=row.code,
        started=row.started,
        detail_json=row.detail_json,
        sent=row.sent,
        reported=row.reported,
        stdout_bytes=row.stdout_bytes,
        stderr_bytes=row.stderr_bytes,
        created_at_ms=row.created_at_ms,
        started_at_ms=row.started_at_ms,
        ended_at_ms=row.ended_at_ms,
        pruned_at_ms=row.pruned_at_ms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a turn must know of each job of its session, at each of its steps."""

    id: JobId
    call_id: str
    state: JobState


def briefs(c: sa.Connection, session: str) -> list[Brief]:
    """Read a session's jobs in brief, oldest first: neither their input nor their command."""
    return [
        Brief(id=JobId(row.id), call_id=row.call_id, state=JobState(row.state))
        for row in c.execute(_BRIEFS, {"session": session})
    ]


def of_session(c: sa.Connection, session: str) -> list[Job]:
    """Read a session's jobs, oldest first."""
    return [_read(row) for row in c.execute(_OF_SESSION, {"session": session})]


def programs(c: sa.Connection, work_id: str) -> set[str]:
    """Return the programs that an item's commands named."""
    specs = c.scalars(sa.select(JOB.c.spec_json).where(JOB.c.work_id == work_id))
    return {argv[0] for spec in specs if (argv := json.loads(spec).get("argv"))}


def running_twin(c: sa.Connection, session: str, digest: str) -> Job | None:
    """Find a live job of this session that runs exactly this (B10.3)."""
    row = c.execute(_TWIN, {"session": session, "same": digest}).one_or_none()
    return None if row is None else _read(row)


# ------------------------------------------------------------------ for the device's link
def unsettled(c: sa.Connection, device: str) -> list[Job]:
    """Read what the device must still be told of, or tell of: oldest first."""
    return [_read(row) for row in c.execute(_UNSETTLED, {"device": device})]


def settled_among(c: sa.Connection, device: str, ids: Collection[str]) -> list[str]:
    """Return those of *ids* that are this device's and settled: it may forget them."""
    mine = sa.select(JOB.c.id).where(JOB.c.device_id == device, JOB.c.settled, JOB.c.id.in_(ids))
    return list(c.scalars(mine))


def mark_sent(c: sa.Connection, job: str) -> bool:
    """Note that a queued command is about to leave; False when it is not queued any more."""
    return c.execute(_SENT, {"of_job": job}).rowcount == 1


def mark_settled(c: sa.Connection, job: str) -> None:
    """Note that the device has nothing more to tell of it."""
    c.execute(_SETTLED, {"of_job": job})


def began(u: Unit, job: Job, started: Started) -> None:
    """Note that the device runs it; a late report of an ended job changes nothing."""
    if started is not Started.YES or not machine.may(job.state, machine.Began()):
        return
    state = machine.step(job.state, machine.Began())
    if job.started == started.value and state is job.state:
        return
    changed = {
        "state": state.value,
        "started": started.value,
        "started_at_ms": job.started_at_ms or u.now_ms,
    }
    u.c.execute(_BEGAN, {"of_job": job.id, **changed})
    about = _about(job)
    record(u, "command.started", about)


def stop(u: Unit, job: Job) -> bool:
    """Ask a job to stop; return False when it has ended already.

    One that never left the hub ends at once: no device has heard of it.
    """
    if not machine.may(job.state, machine.StopAsked()):
        return False
    about = _about(job)
    record(u, "command.stop_asked", about)
    if not job.sent:
        end(u, job, Outcome(ending=Ending.CANCELLED, started=Started.NO))
        mark_settled(u.c, job.id)
        return True
    state = machine.step(job.state, machine.StopAsked())
    u.c.execute(JOB.update().where(JOB.c.id == job.id).values(state=state.value))
    return True


def end(u: Unit, job: Job, outcome: Outcome) -> bool:
    """Store how a job ended, once: the first end stands, a later one changes nothing.

    Its session gets a notice unless the turn still waits for it and writes the result itself.
    Returns True when this was the first end.
    """
    code = outcome.number if outcome.ending is Ending.EXITED else None
    event = machine.end_event(outcome.ending, code)
    if not machine.may(job.state, event):
        return False
    state = machine.step(job.state, event)
    changed = {
        "state": state.value,
        "outcome": outcome.ending.value,
        "code": outcome.number,
        "started": outcome.started.value,
        "detail_json": json.dumps(to_plain(outcome)),
        "ended_at_ms": u.now_ms,
    }
    u.c.execute(_END, {"of_job": job.id, **changed})
    about = _about(job)
    record(u, "command.ended", about, {"outcome": outcome.ending.value, "code": outcome.number})
    seconds = outcome.elapsed_ms / 1000
    charge(
        u,
        Cost(
            kind="job",
            session_id=job.session,
            work_id=job.work,
            turn_id=job.turn,
            seconds=seconds,
        ),
    )
    watches.end(u, job.id)
    waits.settle(u.c, job.work, Wake(kind=WaitKind.JOB, ref=job.id))
    if job.background:
        tell(u, read(u.c, job.id))
    return True


def tell(u: Unit, job: Job) -> None:
    """Deliver a job's end to its session as a trigger that names the job (B8.3)."""
    item = work.read(u.c, job.work)
    notice = intake.Notice(
        kind="job.finished",
        channel=Channel.JOB,
        title=f"job {job.id}: {job.outcome}",
        text=json.dumps(output.result(u.c, job, output.TOLD_BYTES), ensure_ascii=False),
        actor=intake.HUB,
        trust=output.trust(item),
        dedupe=(f"job:{job.id}",),
        facts=(("job", job.id), ("outcome", job.outcome)),
    )
    intake.notify(u, job.session, item.thread, notice)
    reported(u, job)


def into_background(u: Unit, job: Job) -> None:
    """From now on the job's end comes as a trigger; its call was answered with a placeholder."""
    u.c.execute(_BACKGROUND, {"of_job": job.id})


def reported(u: Unit, job: Job) -> None:
    """Note that the tool message holds the end, or a trigger does."""
    u.c.execute(_REPORTED, {"of_job": job.id})
