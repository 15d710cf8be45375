"""Runs: a success after a failure of the same check is called fixed, by what is stored (C2).

Here, because a connector has no memory that outlives it, and one that has would not know what
another road brought. It is read in intake's transaction, so a restart between red and green, or a
failure that came late, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from upright.api import Trigger
from upright.core.ids import ThreadId
from upright.kit.ci import FAILED, FIXED, SUCCEEDED
from upright.store import codec
from upright.store.tables import TRIGGER

ENDS: Final = (FAILED, SUCCEEDED, FIXED)
LOOKED_AT: Final = 50  # the newest ends of a thread; further back nobody asks whether it is fixed

_ENDED: Final = (
    sa.select(TRIGGER.c.body_json)
    .where(
        TRIGGER.c.thread_id == sa.bindparam("thread"),
        TRIGGER.c.source == sa.bindparam("source"),
        TRIGGER.c.kind.in_(ENDS),
    )
    .order_by(TRIGGER.c.seq.desc())
    .limit(LOOKED_AT)
)
_Which = tuple[str, ThreadId, str]


@dataclass(slots=True)
class Runs:
    """The ends that a batch has brought so far, by source, thread and check."""

    new: dict[_Which, list[Trigger]] = field(default_factory=dict)

    def told(self, c: sa.Connection, source: str, thread: ThreadId, trigger: Trigger) -> Trigger:
        """Return a trigger as it is to be stored: a success that ends a failure is ``fixed``."""
        check = _fact(trigger, "check")
        if trigger.kind not in ENDS or not check:
            return trigger
        which = (source, thread, check)
        if trigger.kind == SUCCEEDED:
            stored = [
                codec.load_trigger(body)
                for body in c.scalars(_ENDED, {"thread": thread, "source": source})
            ]
            before = [one for one in reversed(stored) if _fact(one, "check") == check]
            trigger = _fixed(trigger, [*before, *self.new.get(which, ())])
        self.new.setdefault(which, []).append(trigger)
        return trigger


def _fixed(trigger: Trigger, before: list[Trigger]) -> Trigger:
    """Compare with the last end that is not later; ``same_commit``: it is green by luck alone."""
    earlier = [one for one in before if _not_later(one.occurred_at, trigger.occurred_at)]
    if not earlier:
        return trigger
    # Of two at one moment, or without one, the later arrival counts: the first that max finds.
    last = max(earlier[::-1], key=lambda one: one.occurred_at.timestamp() if one.occurred_at else 0)
    if last.kind != FAILED:
        return trigger
    same = bool(sha := _fact(trigger, "sha")) and sha == _fact(last, "sha")
    facts = (*trigger.context.facts, *((("same_commit", "yes"),) if same else ()))
    return replace(trigger, kind=FIXED, context=replace(trigger.context, facts=facts))


def _not_later(one: datetime | None, other: datetime | None) -> bool:
    return one is None or other is None or one <= other


def _fact(trigger: Trigger, name: str) -> str:
    return next((value for key, value in trigger.context.facts if key == name), "")
