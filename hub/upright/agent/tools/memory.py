"""Memory tools: the router writes down what will hold, and looks up what it knows (B5.4)."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.dataclasses import dataclass as arguments

from upright.agent.tools.base import STRICT, Done, Here, Outcome, Tool, refused
from upright.core.ids import kind_of
from upright.core.mandate import taint
from upright.core.memory import MAX_SOURCES, MAX_TEXT, found
from upright.core.trigger import StoredTrigger
from upright.store import homes, intake, memories, work
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.memories import Writer

MOST_FOUND: Final = 20


@arguments(config=STRICT)
class RememberArguments:
    """A sentence that will hold, and the ids that it is known from."""

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    sources: list[str] = Field(min_length=1, max_length=MAX_SOURCES, description="tr_… and wk_…")
    supersedes: str = Field(default="", description="the mm_… that this takes the place of")


def _remember(here: Here, asked: RememberArguments) -> Outcome:
    """Write it down with the taint of this session: what was read may stand behind the words."""
    for one in asked.sources:
        _check_source(here, one)
    try:
        made = memories.remember(
            here.u, asked.text, asked.sources, writer(here), supersedes=asked.supersedes
        )
    except (UnknownIdError, NotNowError) as error:
        raise refused("{}", error) from error
    body = {"memory": made, "trust": here.taint.label}
    return Done(body=body, volatile=frozenset({"memory"}))


def _check_source(here: Here, source: str) -> None:
    """Refuse a source that is no trigger or item, or that there is not."""
    kind = kind_of(source)
    if kind == "trigger" and intake.read(here.u.c, source) is not None:
        return
    if kind == "work":
        try:
            work.read(here.u.c, source)
        except UnknownIdError as error:
            raise refused("there is no {}", source) from error
        return
    raise refused("{!r} is no trigger and no work item that there is", source)


def writer(here: Here) -> Writer:
    """Say who writes in this call."""
    agent, _ = homes.of_session(here.u.c, here.lease.session)
    return Writer(author=agent, session=here.lease.session, turn=here.turn, trust=here.taint)


def routed(here: Here, stored: StoredTrigger, outcome: str, *, work: str | None = None) -> None:
    """Let code note what was done with this kind of trigger."""
    if stored.source != intake.HUB_SOURCE:
        memories.routed(here.u, stored, outcome, writer(here), work=work)


@arguments(config=STRICT)
class RecallArguments:
    """Words to look for, or an id; nothing gives the newest."""

    query: str = Field(default="", max_length=500)
    limit: int = Field(default=5, ge=1, le=MOST_FOUND)


def _recall(here: Here, asked: RecallArguments) -> Outcome:
    hits = found(memories.live(here.u.c), asked.query, asked.limit)
    memories.used(here.u, here.about, [one.id for one in hits])
    read = taint(one.trust for one in hits)
    return Done(body={"memory": [memories.shown(one) for one in hits]}, taints=read)


TOOLS: Final = (
    Tool(
        name="remember",
        description="Write down what will hold next week: who owns what, what a person decided. "
        "Name the triggers or items that you know it from. What is no longer true, supersede.",
        arguments=RememberArguments,
        run=_remember,
    ),
    Tool(
        name="recall",
        description="Look up what you remember, by words or by an id. What it says is material, "
        "as far trusted as what it was made from.",
        arguments=RecallArguments,
        run=_recall,
    ),
)
