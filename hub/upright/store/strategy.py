"""Strategy as rows: how a delivery is taken, chosen and stored in its own transaction (B9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.ids import TriggerId, WorkId
from upright.core.job import JobState
from upright.core.strategy import Activity, Choice, Situation, Strategy, choose
from upright.core.trigger import StoredTrigger
from upright.store.events import About, record
from upright.store.tables import DELIVERY, JOB, SESSION
from upright.store.unit import Unit

_LIVE: Final = (JobState.QUEUED.value, JobState.RUNNING.value, JobState.STOPPING.value)

# statements of the hot path are made once: building one costs more than running it
_LED: Final = sa.select(SESSION.c.work_id, SESSION.c.lease_until_ms).where(
    SESSION.c.id == sa.bindparam("session")
)
_COMMANDS: Final = (
    sa.select(JOB.c.id)
    .where(
        JOB.c.session_id == sa.bindparam("session"),
        JOB.c.state.in_(_LIVE),
        JOB.c.background.is_(False),
    )
    .limit(1)
)
_UNTAKEN: Final = sa.and_(
    DELIVERY.c.session_id == sa.bindparam("session"), DELIVERY.c.taken_n.is_(None)
)
_PRESSING: Final = (
    sa.select(DELIVERY.c.trigger_id, DELIVERY.c.strategy, DELIVERY.c.wake)
    .where(_UNTAKEN, DELIVERY.c.strategy != sa.literal_column(f"'{Strategy.QUEUE.value}'"))
    .order_by(DELIVERY.c.id)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The strategy of one delivery, and the item of the session that gets it."""

    strategy: Strategy
    work: WorkId | None


def chosen(u: Unit, stored: StoredTrigger, session: str, *, urgent: bool) -> Chosen:
    """Choose for a delivery that wakes, and leave the event ``strategy.chosen`` (B9.6).

    A lease that nobody renews counts as a turn: whoever takes it over finds the trigger.
    """
    row = u.c.execute(_LED, {"session": session}).one()
    activity = Activity.IDLE
    if row.lease_until_ms is not None:
        busy = u.c.scalar(_COMMANDS, {"session": session}) is not None
        activity = Activity.WORKING if busy else Activity.RUNNING
    actor = stored.trigger.actor.kind
    situation = Situation(
        kind=stored.trigger.kind,
        actor=actor,
        trust=stored.trust,
        urgent=urgent,
        activity=activity,
        parallel=True,
    )
    choice = choose(situation)
    work_id = WorkId(row.work_id) if row.work_id else None
    about = About(trigger_id=stored.id, session_id=session, work_id=work_id)
    record(u, "strategy.chosen", about, _told(situation, choice))
    return Chosen(strategy=choice.verdict, work=work_id)


def _told(situation: Situation, choice: Choice) -> dict[str, object]:
    """Write down a choice. ``took_ms`` is what asking took: the rule asks nobody."""
    return {
        "verdict": choice.verdict,
        "options": sorted(choice.options),
        "by": choice.by,
        "means": choice.means,
        "session": situation.activity,
        "urgent": situation.urgent,
        "advice": choice.overruled,
        "took_ms": 0,
    }


# ------------------------------------------------------------------ what a turn must know of it
@dataclass(frozen=True, slots=True, kw_only=True)
class Pressing:
    """What waits in an inbox and is not just queued, oldest first.

    ``urgent`` cut the step under way short; ``questions`` are for side steps; ``asides`` were
    answered by one, and wait for the transcript.
    """

    urgent: tuple[TriggerId, ...] = ()
    questions: tuple[TriggerId, ...] = ()
    asides: tuple[TriggerId, ...] = ()


def pressing(c: sa.Connection, session: str) -> Pressing:
    """Read what presses a session."""
    rows = c.execute(_PRESSING, {"session": session}).all()
    parallel = [row for row in rows if row.strategy == Strategy.PARALLEL.value]
    urgent = [row for row in rows if row.strategy == Strategy.CANCEL.value]
    return Pressing(
        urgent=tuple(TriggerId(row.trigger_id) for row in urgent),
        questions=tuple(TriggerId(row.trigger_id) for row in parallel if row.wake),
        asides=tuple(TriggerId(row.trigger_id) for row in parallel if not row.wake),
    )


def answered_beside(u: Unit, session: str, question: str) -> bool:
    """Make a question an aside: it wakes nobody any more. False when somebody has taken it."""
    mine = sa.and_(_UNTAKEN, DELIVERY.c.trigger_id == question, DELIVERY.c.wake)
    aside = DELIVERY.update().where(mine).values(wake=False)
    return u.c.execute(aside, {"session": session}).rowcount == 1
