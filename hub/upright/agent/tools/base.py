"""Tool: a name, a schema and a unit of work; what it asks of the world is committed with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from upright.api import EffectClass
from upright.core.agenda import Agenda
from upright.core.ids import DeviceId, JobId, SessionId
from upright.core.mandate import Decision, Trust, decide
from upright.core.talk import Around
from upright.core.transcript import ToolCall, ToolSpec
from upright.core.work import WorkItem
from upright.store.events import About
from upright.store.sessions import Claim
from upright.store.unit import Unit

A = TypeVar("A")

STRICT = ConfigDict(extra="forbid", frozen=True)
"""For arguments: a key that the schema doesn't name is an error, told to the model."""


class ToolRefusedError(Exception):
    """A tool can't do this; the sentence is what the model is told."""


def refused(sentence: str, *parts: object) -> ToolRefusedError:
    """Make the error that tells the model *sentence*, its braces filled in order."""
    return ToolRefusedError(sentence.format(*parts))


@dataclass(slots=True)
class After:
    """What to hint at once the unit is committed."""

    devices: set[DeviceId] = field(default_factory=set)
    sessions: set[SessionId] = field(default_factory=set)
    outbox: bool = False
    timers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where a tool runs: in which unit, session, turn and call, for which work item.

    ``talk`` and ``agenda``: what the world was asked before the unit, for the tools that need it.
    """

    u: Unit
    lease: Claim
    turn: str
    call: ToolCall
    item: WorkItem | None
    taint: Trust
    after: After
    talk: Around | None = None
    agenda: Agenda | None = None

    @property
    def about(self) -> About:
        """What an event of this tool is about."""
        return About(
            session_id=self.lease.session,
            work_id=self.item.id if self.item else None,
            turn_id=self.turn,
        )

    def own_item(self) -> WorkItem:
        """Return the work item; ToolRefusedError in a session that has none."""
        if self.item is None:
            raise refused("this session has no work item")
        return self.item

    def decide(self, effect: EffectClass) -> Decision:
        """Ask B14.2's table: the item's mandate, the session's taint, this class of effect."""
        return decide(self.own_item().mandate, self.taint, effect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The call is answered: with JSON, and with what of it counts when results are compared.

    ``taints`` is the trust of what the answer shows that nobody had read before, ``shows`` the id
    of that, where it has one. ``private``: it shows what no public reply may tell.
    """

    body: Mapping[str, Any]
    ends_turn: bool = False
    taints: Trust = Trust.OPERATOR
    shows: str = ""
    private: bool = False
    volatile: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """The tool message."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def digest(self) -> str:
        """A digest of the result, volatile parts left out (B10.4)."""
        kept = {key: value for key, value in self.body.items() if key not in self.volatile}
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A job runs; the call is answered when it ends, or with a placeholder."""

    job: JobId


Outcome = Done | Started


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A]):
    """A tool: ``run`` is a synchronous function of where it is and its parsed arguments."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Here, A], Outcome]

    def spec(self) -> ToolSpec:
        """Return what the model is told."""
        schema = TypeAdapter(self.arguments).json_schema()
        return ToolSpec(name=self.name, description=self.description, parameters=schema)

    def __call__(self, here: Here) -> Outcome:
        """Parse the call's arguments and run.

        Raises:
            ToolRefusedError: the arguments don't fit, or the tool can't do it.
        """
        try:
            parsed = TypeAdapter(self.arguments).validate_json(here.call.arguments or "{}")
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(str(part) for part in one['loc']) or 'arguments'}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)[:5]
            )
            raise refused("the arguments of {} don't fit: {}", self.name, problems) from error
        return self.run(here, parsed)


def refusal(sentence: str) -> Done:
    """Answer a call that could not be done."""
    return Done(body={"error": sentence})
