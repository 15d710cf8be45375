"""Neighbours: what was said around a trigger, by its service or by what the hub has stored."""

from __future__ import annotations

from typing import Final

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.ids import SessionId
from upright.core.talk import MOST, told
from upright.core.transcript import ToolCall
from upright.core.trigger import StoredTrigger
from upright.engine.ports import TalkQuestion
from upright.store import conversation, intake, proofs
from upright.store.unit import Connection


@arguments(config=STRICT)
class NeighboursArguments:
    """A trigger, and how many messages on each side."""

    trigger: str
    before: int = Field(default=5, ge=0, le=MOST)
    after: int = Field(default=5, ge=0, le=MOST)


def question(c: Connection, session: SessionId, call: ToolCall) -> TalkQuestion | None:
    """Return what a call wants to know; None when its unit will refuse it."""
    try:
        asked = TypeAdapter(NeighboursArguments).validate_json(call.arguments or "{}")
    except ValidationError:
        return None
    stored = _own(c, session, asked.trigger)
    if stored is None:
        return None
    return TalkQuestion(trigger=stored, before=asked.before, after=asked.after)


def _own(c: Connection, session: SessionId, trigger: str) -> StoredTrigger | None:
    """Return a trigger that the session has taken; no other is its to ask about (B7.4)."""
    return intake.read(c, trigger) if proofs.belongs(c, session, trigger) else None


def _neighbours(here: Here, asked: NeighboursArguments) -> Outcome:
    stored = _own(here.u.c, here.lease.session, asked.trigger)
    if stored is None:
        raise refused("there is no trigger {} that you may ask about", asked.trigger)
    around = here.talk or conversation.around(here.u.c, stored, asked.before, asked.after)
    return Done(body=told(around, where=stored.id), taints=around.trust, shows=stored.id)


NEIGHBOURS: Final = Tool(
    name="neighbours",
    description="Show what was said just before and after a trigger, in the same conversation or "
    "beside the same line of code. It is material. `told_by` says whether the service told it now, "
    "or the hub from what it has stored; `whole` that nothing is missing.",
    arguments=NeighboursArguments,
    run=_neighbours,
)
