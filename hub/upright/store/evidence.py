"""Evidence: whether what a worker names as proof is there, its own, and has ended so (B11.11).

Status comes from the store alone, whatever the worker says of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.core.outbox import OutboxState
from upright.core.work import Evidence, WorkItem
from upright.store import intake, jobs, outbox, output, proofs, relations
from upright.store.tables import DELIVERY, JOB, TRIGGER
from upright.store.unit import Connection
from upright_wire.command import Ending

_ID: Final = re.compile(r"\b(?:jb|tr|ob)_[0-9a-z]{26}\b")
_COMMIT: Final = re.compile(r"\b[0-9a-f]{7,64}\b")
_FAILED: Final = ".failed"
_ON_ITS_WAY: Final = frozenset({OutboxState.PENDING, OutboxState.SENDING})
_LOOKED_AT: Final = 50  # so many of the newest jobs and triggers are searched for a commit
_LOOKED_INTO: Final = 64 * 1024  # bytes of each job's output


class Claim(StrEnum):
    """How what is named as proof has ended, by the worker's word."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def unfinished(c: Connection, item: WorkItem) -> str:
    """Say what of an item still runs; empty when nothing does: it can't be done before."""
    for job in jobs.of_session(c, item.session):
        if not job.over:
            return f"{job.id} is {job.state.value}: wait for it, or stop it, and then complete"
    for child in relations.live_children(c, item.id):
        return f"{child.id}, its child, is {child.state.value}: yield to it first"
    return ""


def wrong(c: Connection, item: WorkItem, given: Evidence, claim: Claim) -> str:
    """Say what is wrong with the proof of one criterion; empty when it holds.

    Each id that it names must be this item's; one of them at least, or a commit that the item has
    seen, must be there and in the claimed final state.
    """
    ids = list(dict.fromkeys(_ID.findall(given.proof)))
    for one in ids:
        if not proofs.belongs(c, item.session, one):
            return f"{one} is nothing that this item did or was told"
    faults = [_fault(c, one, claim) for one in ids]
    final = next((one for one in faults if one and not one.endswith(_LATER)), "")
    commits = _COMMIT.findall(given.proof)
    if final or (ids and not all(faults)) or any(known(c, item, one) for one in commits):
        return final
    if faults or commits:
        return (faults or [f"this item has seen no commit {commits[0]}"])[0]
    return f"the proof for {given.criterion!r} names no job, trigger, effect or commit"


_LATER: Final = "it proves nothing before it was sent"


def _fault(c: Connection, identifier: str, claim: Claim) -> str:
    """Say why something is not in the claimed final state."""
    match identifier[:2]:
        case "jb":
            return _of_job(c, identifier, claim)
        case "ob":
            return _of_effect(c, identifier)
        case _:
            return _of_trigger(c, identifier, claim)


def _of_job(c: Connection, identifier: str, claim: Claim) -> str:
    job = jobs.read(c, identifier)
    if not job.over:
        return f"{job.id} still runs"
    succeeded = job.outcome == Ending.EXITED.value and job.code == 0
    if succeeded is (claim is Claim.SUCCEEDED):
        return ""
    code = "" if job.code is None else f" {job.code}"
    return f"{job.id} ended so: {job.outcome}{code}; your claim is that it {claim.value}"


def _of_effect(c: Connection, identifier: str) -> str:
    state = outbox.read(c, identifier).item.state
    if state is OutboxState.SENT:
        return ""
    return f"{identifier} is {state.value}: {_LATER if state in _ON_ITS_WAY else 'no receipt'}"


def _of_trigger(c: Connection, identifier: str, claim: Claim) -> str:
    stored = intake.read(c, identifier)
    failed = stored is not None and stored.trigger.kind.endswith(_FAILED)
    if failed and claim is Claim.SUCCEEDED:
        return f"{identifier} tells of a failure: it proves no success"
    return ""


# ------------------------------------------------------------------ commits
def known(c: Connection, item: WorkItem, commit: str) -> bool:
    """Say whether an item has seen a commit: in its code, what it was told, or what it ran."""
    if item.code is not None and item.code.sha.startswith(commit):
        return True
    return any(commit in text for text in _seen(c, item))


def _seen(c: Connection, item: WorkItem) -> Iterator[str]:
    told = (
        sa.select(TRIGGER.c.body_json)
        .join(DELIVERY, DELIVERY.c.trigger_id == TRIGGER.c.id)
        .where(DELIVERY.c.session_id == item.session, DELIVERY.c.taken_n.is_not(None))
    )
    yield from c.scalars(told.order_by(TRIGGER.c.seq.desc()).limit(_LOOKED_AT))
    ran = sa.select(JOB.c.id).where(JOB.c.session_id == item.session)
    for job in c.scalars(ran.order_by(JOB.c.created_at_ms.desc()).limit(_LOOKED_AT)).all():
        for name in ("stdout", "stderr"):
            stream = output.Stream(job, name)
            start = max(output.length(c, stream) - _LOOKED_INTO, 0)
            _, printed = output.read(c, stream, start, _LOOKED_INTO)
            yield printed.decode(errors="replace")
