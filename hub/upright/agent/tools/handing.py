"""Handing back: a worker gives a trigger that is not for it back to the router (B6.5)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.store import handing, intake, proofs, sessions
from upright.store.errors import NotNowError


@arguments(config=STRICT)
class HandBackArguments:
    """A trigger that this worker was given, and why it is none of its business."""

    trigger: str
    reason: str = Field(min_length=1, max_length=1000)


def _hand_back(here: Here, asked: HandBackArguments) -> Outcome:
    item = here.own_item()
    stored = intake.read(here.u.c, asked.trigger)
    mine = proofs.belongs(here.u.c, here.lease.session, asked.trigger)
    if stored is None or not mine or stored.source == intake.HUB_SOURCE:
        raise refused("{} is no trigger of yours that came from outside", asked.trigger)
    back = handing.Back(item=item, trigger=stored, reason=asked.reason, trust=here.taint)
    try:
        done = handing.hand_back(here.u, back)
    except NotNowError as error:
        raise refused("{}", error) from error
    router = sessions.router(here.u.c)
    if router is not None:
        here.after.sessions.add(router)
    body = {"handed_back": stored.id, "to": "operator" if done.request else "router"}
    return Done(body=body)


HAND_BACK: Final = Tool(
    name="hand_back",
    description="Give a trigger that is not for this work item back to the router, with the "
    "reason. You won't get it again.",
    arguments=HandBackArguments,
    run=_hand_back,
)
