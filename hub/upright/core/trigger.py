"""Trigger: the structured event as the hub stores it, with origin and authority fixed at intake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from upright.api import Actor, ActorKind, Trigger
from upright.core.ids import ThreadId, TriggerId
from upright.core.mandate import Trust, trust_of


class Disposition(StrEnum):
    """What became of a trigger: exactly one, with a reason."""

    IGNORED = "ignored"
    JOINED = "joined"  # context for its subscribers, without a wake
    STARTED = "started"  # handed to the router
    WOKE = "woke"  # passed through to its subscribers
    HELD = "held"  # kept for a person
    QUARANTINED = "quarantined"
    ANSWERED = "answered"  # it was a person's answer to a request, and went to no session


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person of the configuration: one kind, and their ids over all sources."""

    name: str
    kind: ActorKind
    ids: frozenset[str]  # "source:id", or "*:id" in every source


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The identity map (B6.11) and the bots that the configuration lists.

    ``trusted_bots`` are the team's own: what they report counts like the result of an own job,
    and still nothing that they say is an instruction.
    """

    by_id: Mapping[str, Person] = field(default_factory=dict)
    bots: frozenset[str] = frozenset()
    trusted_bots: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        persons: tuple[Person, ...],
        bots: frozenset[str] = frozenset(),
        trusted_bots: frozenset[str] = frozenset(),
    ) -> People:
        """Index *persons* by each of their ids."""
        by_id = {key: person for person in persons for key in person.ids}
        return cls(by_id=by_id, bots=bots, trusted_bots=trusted_bots)

    def person(self, source: str, actor_id: str) -> Person | None:
        """Find who has this id in this source."""
        return self.by_id.get(f"{source}:{actor_id}") or self.by_id.get(f"*:{actor_id}")

    def bot_trust(self, source: str, actor_id: str) -> Trust:
        """Return how far a bot is trusted; a stranger's trust unless it is listed."""
        names = {f"{source}:{actor_id}", f"*:{actor_id}"}
        if names & self.trusted_bots:
            return Trust.MEMBER
        return Trust.CONTACT if names & self.bots else Trust.STRANGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who acted, as configuration says, and how far that is trusted.

    ``person`` is the name that the identity map has for the id; empty for bots and strangers.
    """

    actor: Actor
    trust: Trust
    listed: bool
    person: str = ""


def origin(trigger: Trigger, source: str, people: People) -> Origin:
    """Fix a trigger's origin: what configuration knows of the id; never what the text says."""
    return known(trigger.actor, source, people)


def known(actor: Actor, source: str, people: People) -> Origin:
    """Say what configuration knows of an actor whom a connector names.

    A connector's SELF stands; a bot stays a bot, listed or not; anybody else is what the identity
    map knows of the id, and a stranger when it knows nothing: a connector can't promote, and only
    the hub itself, which does not come this way, speaks as SYSTEM.
    """
    if actor.kind is ActorKind.BOT:
        trust = people.bot_trust(source, actor.id)
        return Origin(actor=actor, trust=trust, listed=trust > Trust.STRANGER)
    person = None
    if actor.kind is not ActorKind.SELF:
        person = people.person(source, actor.id)
        actor = replace(actor, kind=person.kind if person else ActorKind.STRANGER)
    name = person.name if person else ""
    return Origin(actor=actor, trust=trust_of(actor.kind), listed=False, person=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrigger:
    """A trigger with its id, its thread and its origin; ``received_at_ms`` is epoch, UTC."""

    id: TriggerId
    source: str
    thread: ThreadId
    trigger: Trigger
    trust: Trust
    received_at_ms: int
    payload: str = ""  # where the raw bytes are kept
    edits: TriggerId | None = None  # what it changes, where that is known (B1.4)
