"""Oracle: no silent sleep (B11.8): if there is unfinished work, something will fire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.core import job as jobs
from upright.core.request import RequestState
from upright.core.wait import WaitKind, WaitState
from upright.core.work import TERMINAL, WorkState
from upright.store.tables import DELIVERY, JOB, REQUEST, SESSION, WAIT, WORK
from upright.store.work import CHILD


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
_ON_CHILD: Final = sa.and_(
    WAIT.c.kind == WaitKind.SYSTEM.value, sa.func.substr(WAIT.c.ref, 1, len(CHILD)) == CHILD
)
_CHILD: Final = WORK.alias("child")
_CHILD_LIVES: Final = sa.exists().where(
    _CHILD.c.id == sa.func.substr(WAIT.c.ref, len(CHILD) + 1),
    _CHILD.c.state.not_in([state.value for state in TERMINAL]),
)
_PAST: Final = sa.or_(
    sa.and_(_ON_JOB, sa.not_(_JOB_LIVES)), sa.and_(_ON_CHILD, sa.not_(_CHILD_LIVES))
)
_OPEN_WAIT: Final = sa.and_(WAIT.c.work_id == WORK.c.id, WAIT.c.state == WaitState.OPEN.value)
_FIRES: Final[Mapping[Fires, sa.ColumnElement[bool]]] = {
    Fires.QUEUE: sa.exists().where(SESSION.c.id == WORK.c.session_id, _IN_QUEUE),
    Fires.WAIT: sa.exists().where(_OPEN_WAIT, sa.not_(_PAST)),
    Fires.REQUEST: sa.exists().where(
        REQUEST.c.work_id == WORK.c.id, REQUEST.c.state == RequestState.ASKED.value
    ),
}
_DEAF: Final = sa.exists().where(_OPEN_WAIT, _PAST)


_LIVE: Final = sa.text("work.state <> 'completed' AND work.state <> 'cancelled'")
"""Written as the index of the live items has it: only so is it taken."""
_UNFINISHED: Final = (
    sa.select(
        WORK.c.id,
        WORK.c.state,
        _DEAF.label("deaf"),
        *(condition.label(fires.value) for fires, condition in _FIRES.items()),
    )
    .where(_LIVE, WORK.c.id > sa.bindparam("after"))
    .order_by(WORK.c.id)
)
_PAGE: Final = _UNFINISHED.limit(sa.bindparam("most", type_=sa.Integer()))
_BLOCKED: Final = sa.exists().where(
    WORK.c.session_id == SESSION.c.id, WORK.c.state == WorkState.BLOCKED.value
)
_UNHEARD: Final = (
    sa.select(SESSION.c.id, SESSION.c.kind)
    .where(
        SESSION.c.id.in_(
            sa.select(DELIVERY.c.session_id).where(DELIVERY.c.taken_n.is_(None), DELIVERY.c.wake)
        ),
        SESSION.c.ended_at_ms.is_(None),
        SESSION.c.ready_at_ms.is_(None),
        sa.not_(_BLOCKED),
    )
    .order_by(SESSION.c.id)
)
"""From what waits to who should hear it: sessions that sleep with nothing to read cost nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a look over all live items: go on behind ``last``; empty: it was the end."""

    found: tuple[Stalled, ...]
    last: str


def stalled(c: sa.Connection) -> list[Stalled]:
    """List each unfinished item for which nothing will fire, in the order of their ids.

    An item that waits for a job or a child that has ended, with its session out of the queue, is
    among them: its deadline would come, but what it waited for has happened already (B11.5).
    """
    return _judged(c.execute(_UNFINISHED, {"after": ""}).mappings().all())


def page(c: sa.Connection, after: str, most: int) -> Page:
    """Look at up to *most* live items behind *after*: however many sleep, it costs the same."""
    rows = c.execute(_PAGE, {"after": after, "most": most}).mappings().all()
    last = str(rows[-1]["id"]) if len(rows) == most else ""
    return Page(found=tuple(_judged(rows)), last=last)


def _judged(rows: Sequence[sa.RowMapping]) -> list[Stalled]:
    found = []
    for row in rows:
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
        return "it waits for what has ended already"
    return ""


def unheard(c: sa.Connection) -> list[Stalled]:
    """List live sessions that hold something to wake them, and are not in the queue.

    A blocked item's session is not among them: what comes for it waits for the person's answer.
    """
    missing = "something in its inbox wakes it, and it is not in the queue"
    return [Stalled(id=row.id, state=row.kind, missing=missing) for row in c.execute(_UNHEARD)]
