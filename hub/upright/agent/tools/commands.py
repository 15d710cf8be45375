"""Commands: run on a device, stop, look; a command is a job from its first moment (B10, E4)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools import where
from upright.agent.tools.base import STRICT, Done, Here, Outcome, Started, Tool, refused
from upright.core.ids import DeviceId
from upright.core.job import Job
from upright.core.mandate import Decision
from upright.core.retention import pruned_on
from upright.core.watch import MAX_PATTERN, MIN_EVERY_S
from upright.core.work import WorkItem
from upright.store import jobs, output, watches
from upright.store.errors import NotNowError, UnknownIdError
from upright_wire import spec as wire
from upright_wire.errors import WireError
from upright_wire.plain import to_plain
from upright_wire.spec import Spec, Stdin

DEFAULT_TIMEOUT_S: Final = 30 * 60
VOLATILE: Final = frozenset({"job", "seconds"})


@arguments(config=STRICT)
class RunArguments:
    """A program and its arguments, never a shell line."""

    argv: list[str] = Field(min_length=1, description="program and arguments; no shell")
    cwd: str = Field(default="", description="absolute on the device, or below the workspace")
    stdin: str = Field(default="", description="text for standard input")
    timeout_s: int = Field(default=DEFAULT_TIMEOUT_S, gt=0, le=86_400)
    background: bool = Field(default=False, description="don't wait; its end comes as a trigger")
    secrets: dict[str, str] = Field(
        default_factory=dict, description="variable: name of a secret that the device's owner keeps"
    )


def _run(here: Here, asked: RunArguments) -> Outcome:
    item = here.own_item()
    said = where.decision(here, item)
    place = where.place(here, item)
    if isinstance(place, Done):
        return place
    if asked.secrets and said is not Decision.ALLOW:
        raise refused("what this item has read doesn't let its commands have secrets; ask a person")
    stdin = asked.stdin.encode()
    given = Stdin(bytes=len(stdin), sha256=hashlib.sha256(stdin).hexdigest()) if stdin else None
    try:
        spec = Spec(
            argv=tuple(asked.argv),
            cwd=where.folder(item, place, asked.cwd),
            stdin=given,
            timeout_ms=asked.timeout_s * 1000,
            confinement=where.profile(said, place),
            secrets=tuple(sorted(asked.secrets.items())) or None,
        )
    except WireError as error:
        raise refused("the command can't be sent: {}", error) from error
    order = Ordered(spec=spec, stdin=stdin, device=place.device, background=asked.background)
    return queue(here, item, order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A command that is ready to be queued."""

    spec: Spec
    stdin: bytes
    device: DeviceId
    background: bool = False


def queue(here: Here, item: WorkItem, ordered: Ordered) -> Outcome:
    """Queue a command for its device; a twin that runs already is named instead (B10.3)."""
    digest = wire.digest(ordered.spec)
    twin = jobs.running_twin(here.u.c, here.lease.session, digest)
    if twin is not None:
        said = output.result(here.u.c, twin)
        return Done(body={**said, "note": "this very command runs already"}, volatile=VOLATILE)
    job = jobs.queue(
        here.u,
        jobs.Order(
            session=here.lease.session,
            work=item.id,
            call_id=here.call.id,
            device=ordered.device,
            spec_json=json.dumps(to_plain(ordered.spec)),
            digest=digest,
            stdin=ordered.stdin,
            epoch=here.lease.epoch,
            background=ordered.background,
            turn=here.turn,
        ),
    )
    here.after.devices.add(ordered.device)
    return Started(job=job)


# ------------------------------------------------------------------ stop and look
@arguments(config=STRICT)
class JobArguments:
    """A job of this session."""

    job: str


@arguments(config=STRICT)
class OutputArguments:
    """A place in a job's output."""

    job: str
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: int = Field(default=0, ge=0, description="in bytes")


def _own(here: Here, job_id: str) -> Job:
    try:
        job = jobs.read(here.u.c, job_id)
    except UnknownIdError as error:
        raise refused("there is no job {}", job_id) from error
    if job.session != here.lease.session:
        raise refused("{} is not a job of this session", job_id)
    return job


def _stop(here: Here, asked: JobArguments) -> Outcome:
    job = _own(here, asked.job)
    if not jobs.stop(here.u, job):
        return Done(body={**output.result(here.u.c, job), "note": "it had ended"})
    here.after.devices.add(job.device)
    return Done(body={"job": job.id, "outcome": "stopping"})


def _status(here: Here, asked: JobArguments) -> Outcome:
    job = _own(here, asked.job)
    return Done(body=output.result(here.u.c, job), volatile=VOLATILE)


def _read_output(here: Here, asked: OutputArguments) -> Outcome:
    job = _own(here, asked.job)
    stream = output.Stream(job.id, asked.stream)
    begin, data = output.read(here.u.c, stream, asked.offset, output.SHOWN_BYTES)
    body: dict[str, object] = {
        "job": job.id,
        "stream": asked.stream,
        "offset": begin,
        "next": begin + len(data),
        "total": output.length(here.u.c, stream),
        "text": data.decode(errors="replace"),
    }
    if job.pruned_at_ms is not None:
        body["note"] = pruned_on(job.pruned_at_ms)
    return Done(body=body)


# ------------------------------------------------------------------ watch
@arguments(config=STRICT)
class WatchArguments:
    """What of a running job is worth a wake."""

    job: str
    pattern: str = Field(
        default="",
        max_length=MAX_PATTERN,
        description="a part of a line; with * or ? a glob of the whole line",
    )
    every_s: int | None = Field(default=None, ge=MIN_EVERY_S, le=86_400)


def _watch(here: Here, asked: WatchArguments) -> Outcome:
    if not asked.pattern and asked.every_s is None:
        raise refused("say a pattern to look for, or every how many seconds to be told")
    job = _own(here, asked.job)
    try:
        made = watches.add(here.u, job, pattern=asked.pattern, every_s=asked.every_s)
    except NotNowError as error:
        raise refused("{}", error) from error
    jobs.into_background(here.u, job)
    here.after.timers = True
    return Done(body={"watch": made.id, "job": job.id, "ends": "with the job"})


TOOLS: Final = (
    Tool(
        name="run",
        description="Run a program on the device that has the repository. To change files, pass a "
        "unified diff on stdin to `git apply`. A command that takes longer goes on in the "
        "background, and its end comes as a trigger.",
        arguments=RunArguments,
        run=_run,
    ),
    Tool(
        name="stop",
        description="Ask a job to stop.",
        arguments=JobArguments,
        run=_stop,
    ),
    Tool(
        name="status",
        description="See how a job is doing, with the head and tail of its output.",
        arguments=JobArguments,
        run=_status,
    ),
    Tool(
        name="watch",
        description="Be woken by what a running job prints: lines with a pattern, or how it does "
        "every so many seconds. A watch ends with its job, or after 20 reports.",
        arguments=WatchArguments,
        run=_watch,
    ),
    Tool(
        name="read_output",
        description="Read a job's output from an offset.",
        arguments=OutputArguments,
        run=_read_output,
    ),
)
