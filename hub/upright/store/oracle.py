"""Oracle: no silent sleep (B11.8): if there is unfinished work, something will fire."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.core import job as jobs
from upright.core.request import RequestState
from upright.core.wait import WaitKind, WaitState
from upright.core.work import TERMINAL, WorkState
from upright.store.tables import DELIVERY, JOB, REQUEST, SESSION, WAIT, WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """Unfinished work that nothing will ever wake, and what is missing."""

    id: str  # of a work item, or of a session
    state: str  # of the item; of a session its kind
    missing: str


class Fires(StrEnum):
    """What can bring unfinished work back."""

    QUEUE = "queue"  # its session is in the queue
    WAIT = "wait"  # an open wait, whose deadline comes; for a job: one that lives
    REQUEST = "request"  # an open request, which expires at the latest


_NEEDS: Final[Mapping[WorkState, tuple[frozenset[Fires], str]]] = {
    WorkState.RUNNABLE: (frozenset({Fires.QUEUE}), "its session is not in the queue"),
    WorkState.YIELDED: (frozenset({Fires.QUEUE, Fires.WAIT}), "it has no open wait"),
    WorkState.WAITING_OPERATOR: (frozenset(Fires), "it has no open wait and no open request"),
    WorkState.WAITING_JOB: (frozenset({Fires.QUEUE, Fires.WAIT}), "it waits for no live job"),
    WorkState.WAITING_EXTERNAL: (frozenset({Fires.QUEUE, Fires.WAIT}), "it has no open wait"),
    WorkState.WAITING_TIMER: (frozenset({Fires.QUEUE, Fires.WAIT}), "it has no open wait"),
    WorkState.WAITING_SYSTEM: (frozenset({Fires.QUEUE, Fires.WAIT}), "it has no open wait"),
    WorkState.BLOCKED: (frozenset({Fires.REQUEST}), "nobody was asked to unblock it"),
    WorkState.COMPLETING: (
        frozenset({Fires.QUEUE, Fires.REQUEST}),
        "its session is not in the queue, and nobody was asked to accept it",
    ),
}


# A session under a lease is in the queue, too: a claim leaves `ready_at_ms` as it is, and only
# that brings the session back when the hub dies in the middle of the turn.
_IN_QUEUE: Final = sa.and_(SESSION.c.ready_at_ms.is_not(None), SESSION.c.ended_at_ms.is_(None))
_JOB_LIVES: Final = sa.exists().where(
    JOB.c.id == WAIT.c.ref, JOB.c.state.not_in([state.value for state in jobs.TERMINAL])
)
_ON_JOB: Final = WAIT.c.kind == WaitKind.JOB.value
_OPEN_WAIT: Final = sa.and_(WAIT.c.work_id == WORK.c.id, WAIT.c.state == WaitState.OPEN.value)
_FIRES: Final[Mapping[Fires, sa.ColumnElement[bool]]] = {
    Fires.QUEUE: sa.exists().where(SESSION.c.id == WORK.c.session_id, _IN_QUEUE),
    Fires.WAIT: sa.exists().where(_OPEN_WAIT, sa.or_(sa.not_(_ON_JOB), _JOB_LIVES)),
    Fires.REQUEST: sa.exists().where(
        REQUEST.c.work_id == WORK.c.id, REQUEST.c.state == RequestState.ASKED.value
    ),
}
_DEAF: Final = sa.exists().where(_OPEN_WAIT, _ON_JOB, sa.not_(_JOB_LIVES))


_UNFINISHED: Final = (
    sa.select(
        WORK.c.id,
        WORK.c.state,
        _DEAF.label("deaf"),
        *(condition.label(fires.value) for fires, condition in _FIRES.items()),
    )
    .where(WORK.c.state.not_in([state.value for state in TERMINAL]))
    .order_by(WORK.c.id)
)
_WAKES: Final = sa.exists().where(
    DELIVERY.c.session_id == SESSION.c.id, DELIVERY.c.taken_n.is_(None), DELIVERY.c.wake
)

_BLOCKED: Final = sa.exists().where(
    WORK.c.session_id == SESSION.c.id, WORK.c.state == WorkState.BLOCKED.value
)
_UNHEARD: Final = (
    sa.select(SESSION.c.id, SESSION.c.kind)
    .where(SESSION.c.ended_at_ms.is_(None), SESSION.c.ready_at_ms.is_(None))
    .where(_WAKES, sa.not_(_BLOCKED))
    .order_by(SESSION.c.id)
)


def stalled(c: sa.Connection) -> list[Stalled]:
    """List each unfinished item for which nothing will fire, in the order of their ids.

    An item that waits for a job that has ended, with its session out of the queue, is among
    them: its deadline would come, but what it waited for has happened already (B11.5).
    """
    found = []
    for row in c.execute(_UNFINISHED).mappings():
        state = WorkState(row["state"])
        missing = _missing(
            state, {fires for fires in Fires if row[fires.value]}, deaf=bool(row["deaf"])
        )
        if missing:
            found.append(Stalled(id=row["id"], state=state.value, missing=missing))
    return found


def _missing(state: WorkState, fires: Collection[Fires], *, deaf: bool) -> str:
    needs, missing = _NEEDS[state]
    if not needs.intersection(fires):
        return missing
    if deaf and Fires.QUEUE not in fires:
        return "it waits for a job that has ended"
    return ""


def unheard(c: sa.Connection) -> list[Stalled]:
    """List live sessions that hold something to wake them, and are not in the queue.

    A blocked item's session is not among them: what comes for it waits for the person's answer.
    """
    missing = "something in its inbox wakes it, and it is not in the queue"
    return [Stalled(id=row.id, state=row.kind, missing=missing) for row in c.execute(_UNHEARD)]
