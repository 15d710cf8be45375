"""Children: a worker hands a part of its work to a worker of its own, and yields to it (B11.2)."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.store import relations, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.relations import RelationKind, Spawning


@arguments(config=STRICT)
class SpawnChildArguments:
    """A part of the work that stands for itself."""

    goal: str = Field(min_length=1, max_length=2000)
    criteria: list[str] = Field(min_length=1, max_length=20)
    yield_: bool = Field(default=False, alias="yield", description="rest until it has ended")


def _spawn(here: Here, asked: SpawnChildArguments) -> Outcome:
    item = here.own_item()
    given = Spawning(goal=asked.goal, criteria=tuple(asked.criteria), taint=here.taint)
    try:
        child = relations.spawn(here.u, item, given)
    except NotNowError as error:
        raise refused("{}", error) from error
    here.after.sessions.add(child.session)
    body = {"child": child.id, "session": child.session, "waiting": asked.yield_}
    if asked.yield_:
        relations.wait_for(here.u, item, child)
        here.after.timers = True
    return Done(body=body, ends_turn=asked.yield_)


@arguments(config=STRICT)
class YieldArguments:
    """A child of this item that lives."""

    child: str


def _yield(here: Here, asked: YieldArguments) -> Outcome:
    try:
        child = work.read(here.u.c, asked.child)
        wait = relations.wait_for(here.u, here.own_item(), child)
    except (UnknownIdError, NotNowError) as error:
        raise refused("{}", error) from error
    here.after.timers = True
    return Done(body={"waiting": True, "for": child.id, "wait": wait}, ends_turn=True)


# ------------------------------------------------------------------ the router
@arguments(config=STRICT)
class RelateArguments:
    """Two work items, and what one is to the other."""

    work: str
    kind: Literal["follows", "duplicates", "blocks"]
    other: str


def _relate(here: Here, asked: RelateArguments) -> Outcome:
    try:
        relations.relate(here.u, asked.work, RelationKind(asked.kind), asked.other)
    except (UnknownIdError, NotNowError) as error:
        raise refused("{}", error) from error
    known = relations.of(here.u.c, asked.work)
    return Done(body={"work": asked.work, "relations": len(known)})


RELATE: Final = Tool(
    name="relate",
    description="Note that a work item follows, duplicates or blocks another one.",
    arguments=RelateArguments,
    run=_relate,
)
TOOLS: Final = (
    Tool(
        name="spawn_child",
        description="Hand a part of the work, with a goal and criteria of its own, to another "
        "worker. How it ends comes as a trigger; with yield you rest until then.",
        arguments=SpawnChildArguments,
        run=_spawn,
    ),
    Tool(
        name="yield_to",
        description="End the turn and rest until a child that you spawned has ended.",
        arguments=YieldArguments,
        run=_yield,
    ),
)
