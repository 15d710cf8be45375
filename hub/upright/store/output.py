"""Output: the bytes of commands, by offset, as they came; text only when somebody looks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from upright.core.job import Job, JobState
from upright.core.mandate import Trust
from upright.core.retention import pruned_on
from upright.core.work import WorkItem
from upright.store.errors import OutputGapError
from upright.store.tables import JOB, OUTPUT

SHOWN_BYTES: Final = 8 * 1024
TOLD_BYTES: Final = 600  # of each stream in a trigger, whose text has room for 2 KiB
_COUNTERS: Final = {"stdout": JOB.c.stdout_bytes, "stderr": JOB.c.stderr_bytes}
_MINE: Final = JOB.c.id == sa.bindparam("of_job")

# statements of the hot path are made once: building one costs more than running it
_LENGTH: Final = {name: sa.select(counter).where(_MINE) for name, counter in _COUNTERS.items()}
_ADVANCE: Final = {
    name: JOB.update().where(_MINE).values({counter: sa.bindparam("to")})
    for name, counter in _COUNTERS.items()
}
_ADD: Final = OUTPUT.insert()
_FROM: Final = (
    sa.select(OUTPUT.c.offset, OUTPUT.c.data)
    .where(
        OUTPUT.c.job_id == sa.bindparam("of_job"),
        OUTPUT.c.stream == sa.bindparam("name"),
        OUTPUT.c.offset + sa.func.length(OUTPUT.c.data)
        > sa.bindparam("begin", type_=sa.BigInteger()),
    )
    .order_by(OUTPUT.c.offset)
)
_GIVEN: Final = sa.select(OUTPUT.c.data).where(
    OUTPUT.c.job_id == sa.bindparam("of_job"), OUTPUT.c.stream == "stdin", OUTPUT.c.offset == 0
)


@dataclass(frozen=True, slots=True)
class Stream:
    """One output stream of one job: ``stdout`` or ``stderr``."""

    job: str
    name: str


def give(c: sa.Connection, job: str, stdin: bytes) -> None:
    """Keep a job's input beside it, whole."""
    if stdin:
        c.execute(_ADD, {"job_id": job, "stream": "stdin", "offset": 0, "data": stdin})


def given(c: sa.Connection, job: str) -> bytes:
    """Return a job's input; nothing once it was pruned."""
    return c.scalar(_GIVEN, {"of_job": job}) or b""


def length(c: sa.Connection, stream: Stream) -> int:
    """Return how many bytes of a stream are here, omitted ones counted."""
    return int(c.scalar(_LENGTH[stream.name], {"of_job": stream.job}) or 0)


def add(c: sa.Connection, stream: Stream, offset: int, data: bytes) -> int:
    """Store bytes at their offset; what is here already is dropped. Return the new length.

    Raises:
        OutputGapError: bytes before *offset* are missing (E5.4).
    """
    have = length(c, stream)
    if offset > have:
        raise OutputGapError(job=stream.job, stream=stream.name, have=have, offset=offset)
    fresh = data[have - offset :]
    if not fresh:
        return have
    c.execute(_ADD, {"job_id": stream.job, "stream": stream.name, "offset": have, "data": fresh})
    return _advance(c, stream, have + len(fresh))


def skip(c: sa.Connection, stream: Stream, offset: int, count: int) -> int:
    """Note that *count* bytes from *offset* on were not kept by the device."""
    have = length(c, stream)
    if offset > have:
        raise OutputGapError(job=stream.job, stream=stream.name, have=have, offset=offset)
    return _advance(c, stream, max(have, offset + count))


def _advance(c: sa.Connection, stream: Stream, to: int) -> int:
    c.execute(_ADVANCE[stream.name], {"of_job": stream.job, "to": to})
    return to


def read(c: sa.Connection, stream: Stream, offset: int, max_bytes: int) -> tuple[int, bytes]:
    """Return (offset, bytes) of what is kept at or behind *offset*; the offset may lie further on.

    Empty bytes mean that nothing is kept from there on.
    """
    rows = c.execute(_FROM, {"of_job": stream.job, "name": stream.name, "begin": offset})
    begin, parts, size = offset, list[bytes](), 0
    for row in rows:
        piece = row.data[max(offset - row.offset, 0) :]
        if not parts:
            begin = max(row.offset, offset)
        elif row.offset != begin + size:
            break  # what follows lies behind omitted bytes
        parts.append(piece)
        size += len(piece)
        if size >= max_bytes:
            break
    return begin, b"".join(parts)[:max_bytes]


def shown(c: sa.Connection, stream: Stream, cap_bytes: int = SHOWN_BYTES) -> str:
    """Return a stream as text, head and tail when it is long, with a notice of what is between."""
    total = length(c, stream)
    if total <= cap_bytes:
        return read(c, stream, 0, cap_bytes)[1].decode(errors="replace")
    half = cap_bytes // 2
    head = read(c, stream, 0, half)[1].decode(errors="replace")
    begin, tail = read(c, stream, total - half, half)
    where = f"read_output({stream.job}, {stream.name}, {half})"
    notice = f"\n[…bytes {half} to {begin} of {total}: {where}]\n"
    return head + notice + tail.decode(errors="replace")


def result(c: sa.Connection, job: Job, cap_bytes: int = SHOWN_BYTES) -> dict[str, Any]:
    """Return what the model reads of a job: the volatile part first, the outcome behind it.

    *cap_bytes* bounds each stream; what is left out stands behind ``read_output``.
    """
    detail = json.loads(job.detail_json)
    said: dict[str, Any] = {"job": job.id}
    if job.ended_at_ms is not None:
        said["seconds"] = round((job.ended_at_ms - job.created_at_ms) / 1000, 3)
    said["outcome"] = job.outcome or _unfinished(job)
    if job.code is not None:
        said["code"] = job.code
    said["started"] = job.started
    if job.pruned_at_ms is None:
        said["stdout"] = shown(c, Stream(job.id, "stdout"), cap_bytes)
        said["stderr"] = shown(c, Stream(job.id, "stderr"), cap_bytes)
    else:
        said["output"] = pruned_on(job.pruned_at_ms)
    if detail.get("text"):
        said["note"] = detail["text"]
    for key in ("survivors", "env_dropped"):
        if detail.get(key):
            said[key] = detail[key]
    return said


def trust(item: WorkItem) -> Trust:
    """Return how far a job's output is trusted: an own job's, unless a fork's code printed it."""
    is_strange = item.code is not None and item.code.fork
    return Trust.STRANGER if is_strange else Trust.MEMBER


def _unfinished(job: Job) -> str:
    return "queued" if job.state is JobState.QUEUED else "still_running"
