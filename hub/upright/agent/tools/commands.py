"""Commands: run on a device, stop, look; a command is a job from its first moment (B10, E4)."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Started, Tool, refused
from upright.api import EffectClass
from upright.core.job import Job
from upright.core.mandate import Decision
from upright.core.retention import pruned_on
from upright.core.wait import WaitKind
from upright.core.watch import MAX_PATTERN, MIN_EVERY_S
from upright.core.work import WorkItem
from upright.store import devices, jobs, output, requests, waits, watches
from upright.store.devices import Binding
from upright.store.errors import NotNowError, UnknownIdError
from upright_wire import spec as wire
from upright_wire.errors import WireError
from upright_wire.plain import to_plain
from upright_wire.spec import Confinement, Spec, Stdin

DEFAULT_TIMEOUT_S: Final = 30 * 60
VOLATILE: Final = frozenset({"job", "seconds"})
_PROFILE: Final = {
    Decision.ALLOW: Confinement.NONE,
    Decision.ALLOW_CONFINED: Confinement.WORKSPACE,
    Decision.ALLOW_ISOLATED: Confinement.WORKSPACE_NO_NETWORK,
}


@arguments(config=STRICT)
class RunArguments:
    """A program and its arguments, never a shell line."""

    argv: list[str] = Field(min_length=1, description="program and arguments; no shell")
    cwd: str = Field(default="", description="absolute on the device, or below the workspace")
    stdin: str = Field(default="", description="text for standard input")
    timeout_s: int = Field(default=DEFAULT_TIMEOUT_S, gt=0, le=86_400)
    background: bool = Field(default=False, description="don't wait; its end comes as a trigger")


def _run(here: Here, asked: RunArguments) -> Outcome:
    item = here.own_item()
    decision = _decision(here, item)
    place = devices.place_of(here.u.c, item.code.urls if item.code else ())
    if place is None:
        return _no_device(here, item)
    spec = _spec(asked, place, _PROFILE[decision])
    digest = wire.digest(spec)
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
            device=place.device,
            spec_json=json.dumps(to_plain(spec)),
            digest=digest,
            stdin=asked.stdin.encode(),
            epoch=here.lease.epoch,
            background=asked.background,
            turn=here.turn,
        ),
    )
    here.after.devices.add(place.device)
    return Started(job=job)


def _decision(here: Here, item: WorkItem) -> Decision:
    """Decide on work; code that a stranger pushed is never run unconfined (B14.6)."""
    decision = here.decide(EffectClass.WORK)
    if decision in {Decision.ASK, Decision.DENY}:
        raise refused("this item's mandate doesn't let you run commands; ask a person")
    if item.code is not None and item.code.fork:
        return Decision.ALLOW_ISOLATED
    return decision


def _spec(asked: RunArguments, place: Binding, confinement: Confinement) -> Spec:
    stdin = asked.stdin.encode()
    given = Stdin(bytes=len(stdin), sha256=hashlib.sha256(stdin).hexdigest()) if stdin else None
    cwd = asked.cwd if asked.cwd.startswith("/") else str(PurePosixPath(place.path, asked.cwd))
    try:
        return Spec(
            argv=tuple(asked.argv),
            cwd=cwd,
            stdin=given,
            timeout_ms=asked.timeout_s * 1000,
            confinement=confinement,
        )
    except WireError as error:
        raise refused("the command can't be sent: {}", error) from error


def _no_device(here: Here, item: WorkItem) -> Done:
    """Wait for a device, and tell a person the one command that brings it (E10.4)."""
    name = item.code.repository if item.code else "this item's repository"
    remedy = "execd workspace add PATH"
    prompt = f"No device has {name}. On the machine with a clone of it, run: {remedy}"
    requests.ask(here.u, requests.Asking(prompt=prompt, work=item.id, session=here.lease.session))
    asked = waits.Asked(kind=WaitKind.SYSTEM, ref=devices.NO_DEVICE, why=prompt)
    waits.register(here.u, item.id, asked)
    here.after.timers = True
    return Done(body={"error": "no_device", "note": prompt, "waiting": True}, ends_turn=True)


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
