"""Reconcile: what a device holds against what the rows say, at the start of a link (E5.4, E7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from upright.core.job import Job, JobState
from upright.devices.ports import Follow, SyncPlan
from upright_wire.command import Ending, Outcome, Started
from upright_wire.frames import Held

NEVER_RAN = Outcome(ending=Ending.CANCELLED, started=Started.NO)
FORGOTTEN = Outcome(
    ending=Ending.LOST, started=Started.YES, text="the device does not know it any more"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What follows from an inventory.

    ``ends`` are jobs that end here and now, ``carried`` those that this link need not be sent,
    ``inputs`` whose standard input is wanted, and from which offset on. ``foreign`` are commands
    that no row knows.
    """

    plan: SyncPlan
    ends: tuple[tuple[Job, Outcome], ...]
    settled: tuple[Job, ...]
    carried: frozenset[str]
    inputs: tuple[tuple[Job, int], ...]
    foreign: tuple[Held, ...]


def reconcile(mine: Sequence[Job], held: Mapping[str, Held], past: Collection[str]) -> Reconciled:
    """Compare unsettled jobs with what the device holds; *past* are settled ones it still holds.

    A command that the device doesn't hold and never reported to have started is sent (again): its
    receipts keep it from running twice. One that had started and is gone is lost, not repeated.
    What the device holds and the rows don't know is foreign, and left alone.
    """
    live = [job for job in mine if not job.over and job.id in held]
    absent = [job for job in mine if not job.over and job.id not in held]
    ends = [(job, end) for job in absent if (end := _end_of(job)) is not None]
    stopping = [job.id for job in live if job.state is JobState.STOPPING]
    fenced = [job.id for job, end in ends if end is NEVER_RAN and job.sent]
    over = [job.id for job in mine if job.over and job.id in held]
    known = {job.id for job in mine} | set(past)
    return Reconciled(
        plan=SyncPlan(
            follow=tuple(
                Follow(command_id=job.id, stdout=job.stdout_bytes, stderr=job.stderr_bytes)
                for job in live
            ),
            cancel=(*stopping, *fenced),
            forget=(*over, *past),
        ),
        ends=tuple(ends),
        settled=tuple(job for job in mine if job.over and job.id not in held),
        carried=frozenset(job.id for job in live),
        inputs=tuple(
            (job, held[job.id].stdin) for job in live if held[job.id].stdin < job.stdin_bytes
        ),
        foreign=tuple(held[name] for name in sorted(set(held) - known)),
    )


def _end_of(job: Job) -> Outcome | None:
    """Return how a job ended that the device doesn't hold; None: it is still to be sent."""
    has_started = job.started == Started.YES.value
    match job.state:
        case JobState.STOPPING:
            return FORGOTTEN if has_started else NEVER_RAN
        case JobState.RUNNING:
            return FORGOTTEN
        case JobState.QUEUED:
            return None
        case JobState.STOPPED | JobState.FINISHED | JobState.FAILED | JobState.LOST:
            return None
        case _:
            assert_never(job.state)
