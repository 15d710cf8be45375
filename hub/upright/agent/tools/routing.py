"""Routing tools: the router opens, forwards, lists and cancels work; it has no shell (B5)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.homes.templates import ROUTER
from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.agent.tools.memory import routed
from upright.core.home import WORKER
from upright.core.mandate import Mandate, Trust
from upright.core.trigger import StoredTrigger
from upright.core.work import TERMINAL, WorkItem, WorkState
from upright.store import (
    endings,
    handing,
    homes,
    intake,
    jobs,
    requests,
    succession,
    views_routing,
    work,
)
from upright.store.errors import NotNowError, UnknownIdError


@arguments(config=STRICT)
class SpawnArguments:
    """A work item to be opened for a trigger."""

    trigger: str = Field(description="the trigger's id")
    goal: str = Field(min_length=1, max_length=2000)
    criteria: list[str] = Field(min_length=1, max_length=20)
    why: str = Field(default="", max_length=500)
    agent: str = Field(default=WORKER, description="whose work it will be")
    acceptance: bool = Field(default=False, description="a person must accept the result")


def _spawn(here: Here, asked: SpawnArguments) -> Outcome:
    stored = _own_trigger(here, asked.trigger)
    _check_agent(here, asked.agent)
    mandate = Mandate(
        given_by=stored.trigger.actor.id, trust=stored.trust, acceptance=asked.acceptance
    )
    opening = work.Opening(
        trigger=stored,
        goal=asked.goal,
        criteria=tuple(dict.fromkeys(asked.criteria)),
        mandate=mandate,
        taint=min(stored.trust, here.taint),
        agent=asked.agent,
    )
    opened = work.open_item(here.u, opening, here.lease.session)
    here.after.sessions.add(opened.item.session)
    item = opened.item
    if opened.created:
        routed(here, stored, f"spawn {asked.agent}", work=item.id)
    body: dict[str, object] = {
        "work": item.id,
        "session": item.session,
        "created": opened.created,
    }
    if item.state in TERMINAL:
        body["note"] = f"this trigger had its item, which is {item.state.value}"
    before = succession.follows(here.u.c, item.id)
    if before is not None:
        body["follows"] = {"work": before.work, "session": before.session}
    return Done(body=body, volatile=frozenset({"created"}))


def _check_agent(here: Here, agent: str) -> None:
    """Refuse an agent that there is not, that has too much to do, or that is the router."""
    there = [one for one, _ in homes.roles(here.u.c) if one != ROUTER]
    if agent not in {WORKER, *there}:
        raise refused("there is no agent {!r}; there are {}", agent, ", ".join(there))
    try:
        homes.check_free(here.u, agent)
    except NotNowError as error:
        raise refused("{}: ask a person, or name another agent", error) from error


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
    routed(here, stored, "ask a person")
    return Done(body={"request": request}, volatile=frozenset({"request"}))


# ------------------------------------------------------------------ workers that live
@arguments(config=STRICT)
class ForwardArguments:
    """A trigger of the router's, and the open item that it is for."""

    trigger: str
    work: str


def _forward(here: Here, asked: ForwardArguments) -> Outcome:
    stored = _own_trigger(here, asked.trigger)
    item = _item(here, asked.work)
    try:
        done = handing.forward(here.u, stored, item, here.lease.session)
    except NotNowError as error:
        raise refused("{}", error) from error
    here.after.sessions.add(done.session)
    if done.given:
        routed(here, stored, "forward", work=item.id)
    body = {"work": item.id, "forwarded": done.given, "follows": done.follows}
    if not done.given:
        body["note"] = "its worker had this trigger already"
    return Done(body=body, volatile=frozenset({"forwarded", "follows", "note"}))


def _item(here: Here, work_id: str) -> WorkItem:
    try:
        return work.read(here.u.c, work_id)
    except UnknownIdError as error:
        raise refused("there is no work item {}", work_id) from error


@arguments(config=STRICT)
class ListWorkArguments:
    """Which items: those that are open, or ``ended`` ones."""

    ended: bool = False


def _list_work(here: Here, asked: ListWorkArguments) -> Outcome:
    listing = views_routing.ended if asked.ended else views_routing.open_work
    found = listing(here.u.c, MOST_LISTED)
    goals = views_routing.trust_of_goals(here.u.c, [one["id"] for one in found])
    return Done(body={"work": found, "more": len(found) == MOST_LISTED}, taints=goals)


@arguments(config=STRICT)
class CancelArguments:
    """An open item, and why it is not wanted any more."""

    work: str
    reason: str = Field(min_length=1, max_length=1000)


def _cancel(here: Here, asked: CancelArguments) -> Outcome:
    """Cancel an item: what it waits for, runs and has not sent ends with it, and its children.

    Whoever has read a stranger's words cancels nothing that one of us wants.
    """
    item = _item(here, asked.work)
    if item.state in TERMINAL:
        raise refused("{} is {} already", item.id, item.state.value)
    if here.taint < min(item.mandate.trust, Trust.MEMBER):
        raise refused("after {} text you can't cancel {}: ask a person", here.taint.label, item.id)
    here.after.sessions.update(endings.cancel(here.u, item, asked.reason))
    here.after.sessions.add(item.session)  # a turn under way finds out that it is over
    here.after.devices.update(job.device for job in jobs.of_session(here.u.c, item.session))
    return Done(body={"work": item.id, "state": WorkState.CANCELLED.value})


MOST_LISTED: Final = 50
TOOLS: Final = (
    Tool(
        name="spawn",
        description="Open a work item for a trigger, with a worker of its own that follows the "
        "trigger's thread. `agent` names one of the agents on your list. Opening it again for the "
        "same trigger gives the same item.",
        arguments=SpawnArguments,
        run=_spawn,
    ),
    Tool(
        name="ask",
        description="Ask a person about a trigger; the answer comes as a trigger.",
        arguments=AskAboutArguments,
        run=_ask,
    ),
    Tool(
        name="forward",
        description="Give a trigger to the worker of an open item. On a thread that nobody follows "
        "that worker does from then on.",
        arguments=ForwardArguments,
        run=_forward,
    ),
    Tool(
        name="list_work",
        description="List the open items: id, goal, state, thread, relations; or those that ended, "
        "the last first. Read an item's id for what came of it.",
        arguments=ListWorkArguments,
        run=_list_work,
    ),
    Tool(
        name="cancel",
        description="Cancel an open item that is not wanted any more.",
        arguments=CancelArguments,
        run=_cancel,
    ),
)
