"""Watches as rows: matching output, or the time, of a running job is a trigger (B10.5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import sqlalchemy as sa

from upright.api import Channel
from upright.core import watch as core
from upright.core.ids import JobId, SessionId, WatchId
from upright.core.job import TERMINAL, Job, JobState
from upright.store import intake, output, work
from upright.store.errors import NotNowError
from upright.store.tables import JOB, WATCH
from upright.store.unit import Unit

_READ_BYTES: Final = 256 * 1024
_BATCH: Final = 200
MAX_WATCHES: Final = 8
"""So many watches may look at one job."""

_NOW: Final = sa.bindparam("now_ms", type_=sa.BigInteger())

# statements of the hot path are made once: building one costs more than running it
_LIVE: Final = (
    sa.select(WATCH)
    .where(WATCH.c.job_id == sa.bindparam("job"), WATCH.c.ended.is_(False))
    .order_by(WATCH.c.id)
)
_DUE: Final = (
    sa.select(WATCH)
    .where(
        WATCH.c.next_ms.is_not(None),
        WATCH.c.next_ms <= sa.bindparam("now_ms", type_=sa.BigInteger()),
    )
    .order_by(WATCH.c.next_ms)
    .limit(_BATCH)
)
EARLIEST: Final = sa.select(sa.func.min(WATCH.c.next_ms).label("at_ms")).where(
    WATCH.c.next_ms.is_not(None)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch as it is stored; ``stdout_seen`` and ``stderr_seen`` are bytes."""

    id: WatchId
    job: JobId
    session: SessionId
    pattern: str
    every_ms: int | None
    next_ms: int | None
    stdout_seen: int
    stderr_seen: int
    fired: int
    ended: bool


def add(u: Unit, job: Job, *, pattern: str, every_s: int | None) -> Watch:
    """Watch a live job from here on: what it has printed already is looked at first.

    The same watch again is the one that is there.

    Raises:
        NotNowError: the job has ended, or has as many watches as it may have.
        InvalidError: the pattern can't match.
    """
    core.check_pattern(pattern)
    if job.over:
        raise NotNowError(job.id, f"it has ended already: {job.outcome}")
    every_ms = None if every_s is None else 1000 * max(every_s, core.MIN_EVERY_S)
    present = _live(u.c, job.id)
    for one in present:
        if (one.pattern, one.every_ms) == (pattern, every_ms):
            return one
    if len(present) >= MAX_WATCHES:
        raise NotNowError(job.id, f"it has {MAX_WATCHES} watches already")
    made = Watch(
        id=WatchId(u.new_id("watch")),
        job=job.id,
        session=job.session,
        pattern=pattern,
        every_ms=every_ms,
        next_ms=None if every_ms is None else u.now_ms + every_ms,
        stdout_seen=0,
        stderr_seen=0,
        fired=0,
        ended=False,
    )
    u.c.execute(
        WATCH.insert().values(
            id=made.id,
            job_id=made.job,
            session_id=made.session,
            pattern=made.pattern,
            every_ms=made.every_ms,
            next_ms=made.next_ms,
            stdout_seen=0,
            stderr_seen=0,
            fired=0,
            ended=False,
        )
    )
    _look(u, job, made, is_last=False)
    return made


def _live(c: sa.Connection, job: str) -> list[Watch]:
    return [_read(row) for row in c.execute(_LIVE, {"job": job})]


def look(u: Unit, job_id: str) -> list[SessionId]:
    """Look at what a job has printed since; return whom that wakes.

    It is called in the transaction that stores the output, so a line matches once, however often
    the device sends it, and however it is cut.
    """
    return _look_all(u, job_id, is_last=False)


def end(u: Unit, job_id: str) -> None:
    """End a job's watches with it; its last line needs no end."""
    if not _live(u.c, job_id):
        return
    _look_all(u, job_id, is_last=True)
    mine = sa.and_(WATCH.c.job_id == job_id, WATCH.c.ended.is_(False))
    u.c.execute(WATCH.update().where(mine).values(ended=True, next_ms=None))


def _look_all(u: Unit, job_id: str, *, is_last: bool) -> list[SessionId]:
    present = [one for one in _live(u.c, job_id) if one.pattern]
    if not present:
        return []
    row = u.c.execute(sa.select(JOB.c.work_id).where(JOB.c.id == job_id)).one()
    woken = [
        one.session
        for one in present
        if _look(u, _Job(id=JobId(job_id), work=row.work_id), one, is_last=is_last)
    ]
    return list(dict.fromkeys(woken))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    id: JobId
    work: str


def _look(u: Unit, job: Job | _Job, one: Watch, *, is_last: bool) -> bool:
    """Look at both streams; say whether there is something new to tell."""
    if not one.pattern:
        return False
    out = _lines(u.c, job.id, "stdout", one, is_last=is_last)
    err = _lines(u.c, job.id, "stderr", one, is_last=is_last)
    seen = replace(one, stdout_seen=out.bytes, stderr_seen=err.bytes)
    lines = (*out.lines, *err.lines)
    if not lines:
        if seen != one:
            _store(u.c, seen)
        return False
    title = f"job {job.id} printed what you watch for: {one.pattern}"
    _fire(u, job, seen, _Told(kind="job.output", title=title, text=core.shown(lines)))
    return True


def _lines(c: sa.Connection, job: str, name: str, one: Watch, *, is_last: bool) -> core.Seen:
    at = one.stdout_seen if name == "stdout" else one.stderr_seen
    found = list[str]()
    while True:
        begin, data = output.read(c, output.Stream(job, name), at, _READ_BYTES)
        seen = core.look(one.pattern, data, is_last=is_last and len(data) < _READ_BYTES)
        found += seen.lines
        if not seen.bytes:
            return core.Seen(lines=tuple(found), bytes=at)
        at = begin + seen.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    kind: str
    title: str
    text: str


def _fire(u: Unit, job: Job | _Job, one: Watch, told: _Told) -> None:
    """Tell the session; after the last time the watch says that it stops."""
    item = work.read(u.c, job.work)
    fired = one.fired + 1
    stops = fired >= core.MAX_FIRED
    text = told.text
    if stops:
        text += f"\n[this watch has told you {fired} times and stops here; watch again to go on]"
    notice = intake.Notice(
        kind=told.kind,
        channel=Channel.JOB,
        title=told.title,
        text=text,
        trust=output.trust(item),
        dedupe=(f"watch:{one.id}:{fired}",),
        facts=(("job", job.id), ("watch", one.id)),
    )
    intake.notify(u, one.session, item.thread, notice)
    after = replace(one, fired=fired, ended=stops, next_ms=None if stops else one.next_ms)
    _store(u.c, after)


def _store(c: sa.Connection, after: Watch) -> None:
    c.execute(
        WATCH.update()
        .where(WATCH.c.id == after.id)
        .values(
            stdout_seen=after.stdout_seen,
            stderr_seen=after.stderr_seen,
            fired=after.fired,
            ended=after.ended,
            next_ms=after.next_ms,
        )
    )


# ------------------------------------------------------------------ by the time
def fire_due(u: Unit) -> list[SessionId]:
    """Tell how watched jobs do whose interval has passed; missed times count as one."""
    woken = []
    for row in u.c.execute(_DUE, {"now_ms": u.now_ms}).all():
        one = _read(row)
        job = u.c.execute(sa.select(JOB).where(JOB.c.id == one.job)).one()
        if JobState(job.state) in TERMINAL or one.every_ms is None:
            _store(u.c, replace(one, ended=True, next_ms=None))
            continue
        later = replace(one, next_ms=u.now_ms + one.every_ms)
        title = f"job {one.job} is {job.state}"
        tail = output.shown(u.c, output.Stream(one.job, "stdout"), output.TOLD_BYTES)
        said = _Told(kind="job.status", title=title, text=tail)
        _fire(u, _Job(id=one.job, work=job.work_id), later, said)
        woken.append(one.session)
    return woken


def _read(row: sa.Row[tuple[object, ...]]) -> Watch:
    return Watch(
        id=WatchId(row.id),
        job=JobId(row.job_id),
        session=SessionId(row.session_id),
        pattern=row.pattern,
        every_ms=row.every_ms,
        next_ms=row.next_ms,
        stdout_seen=row.stdout_seen,
        stderr_seen=row.stderr_seen,
        fired=row.fired,
        ended=row.ended,
    )
