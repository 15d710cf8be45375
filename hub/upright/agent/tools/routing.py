"""Routing tools: the router opens work, or asks a person; it has no shell (B5)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.mandate import Mandate
from upright.core.trigger import StoredTrigger
from upright.store import intake, requests, work


@arguments(config=STRICT)
class SpawnArguments:
    """A work item to be opened for a trigger."""

    trigger: str = Field(description="the trigger's id")
    goal: str = Field(min_length=1, max_length=2000)
    criteria: list[str] = Field(min_length=1, max_length=20)
    why: str = Field(default="", max_length=500)
    acceptance: bool = Field(default=False, description="a person must accept the result")


def _spawn(here: Here, asked: SpawnArguments) -> Outcome:
    stored = _own_trigger(here, asked.trigger)
    mandate = Mandate(
        given_by=stored.trigger.actor.id, trust=stored.trust, acceptance=asked.acceptance
    )
    opening = work.Opening(
        trigger=stored,
        goal=asked.goal,
        criteria=tuple(dict.fromkeys(asked.criteria)),
        mandate=mandate,
        taint=min(stored.trust, here.taint),
    )
    opened = work.open_item(here.u, opening, here.lease.session)
    here.after.sessions.add(opened.item.session)
    body = {"work": opened.item.id, "session": opened.item.session, "created": opened.created}
    return Done(body=body, volatile=frozenset({"created"}))


def _own_trigger(here: Here, trigger: str) -> StoredTrigger:
    stored = intake.read(here.u.c, trigger)
    if stored is None or not intake.was_delivered(here.u.c, here.lease.session, trigger):
        raise refused("{} is no trigger of yours", trigger)
    return stored


@arguments(config=STRICT)
class AskAboutArguments:
    """A question to a person about a trigger."""

    trigger: str
    question: str = Field(min_length=1, max_length=4000)


def _ask(here: Here, asked: AskAboutArguments) -> Outcome:
    stored = _own_trigger(here, asked.trigger)
    prompt = f"{asked.question}\n(about {stored.id}: {stored.trigger.content.title})"
    request = requests.ask(here.u, requests.Asking(prompt=prompt, session=here.lease.session))
    return Done(body={"request": request}, volatile=frozenset({"request"}))


TOOLS: Final = (
    Tool(
        name="spawn",
        description="Open a work item for a trigger, with a worker of its own that follows the "
        "trigger's thread. Opening it again for the same trigger gives the same item.",
        arguments=SpawnArguments,
        run=_spawn,
    ),
    Tool(
        name="ask",
        description="Ask a person about a trigger; the answer comes as a trigger.",
        arguments=AskAboutArguments,
        run=_ask,
    ),
)
