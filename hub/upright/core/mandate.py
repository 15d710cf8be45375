"""Mandate and taint: what may be done, given who asked and what was read (B14).

Trust is ordered; taint is the least trusted input of a generation. One table decides for each
(taint, effect class); a mandate may only tighten what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from upright.api import ActorKind, EffectClass


class Trust(IntEnum):
    """How far an input is trusted; the least trusted one taints the rest."""

    STRANGER = 0  # a stranger, an unknown bot, fetched content
    CONTACT = 1  # a contact, a bot that the configuration lists
    MEMBER = 2  # a member; the result of the agent's own job
    OPERATOR = 3  # an operator, and the system itself

    @property
    def label(self) -> str:
        """The word that people and models read."""
        return self.name.lower()


class Decision(StrEnum):
    """What the table says of one effect. The order of severity is the order here."""

    ALLOW = "allow"
    ALLOW_CONFINED = "allow_confined"
    ALLOW_ISOLATED = "allow_isolated"  # confined, without network and secrets
    ASK = "ask"
    DENY = "deny"


_SEVERITY: Final = {decision: rank for rank, decision in enumerate(Decision)}

_OPEN: Final = {EffectClass.READ: Decision.ALLOW, EffectClass.REPLY: Decision.ALLOW}

TABLE: Final[Mapping[Trust, Mapping[EffectClass, Decision]]] = {
    Trust.OPERATOR: {
        **_OPEN,
        EffectClass.WORK: Decision.ALLOW,
        EffectClass.REACH: Decision.ASK,
        EffectClass.SHELL: Decision.ASK,
    },
    Trust.MEMBER: {
        **_OPEN,
        EffectClass.WORK: Decision.ALLOW,
        EffectClass.REACH: Decision.ASK,
        EffectClass.SHELL: Decision.ASK,
    },
    Trust.CONTACT: {
        **_OPEN,
        EffectClass.WORK: Decision.ALLOW_CONFINED,
        EffectClass.REACH: Decision.ASK,
        EffectClass.SHELL: Decision.DENY,
    },
    Trust.STRANGER: {
        EffectClass.READ: Decision.ALLOW,  # own threads only: recall enforces it
        EffectClass.WORK: Decision.ALLOW_ISOLATED,
        EffectClass.REPLY: Decision.ASK,
        EffectClass.REACH: Decision.ASK,
        EffectClass.SHELL: Decision.DENY,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """What a work item may do, and who allowed it.

    ``reach_allowed`` is the operator's word for the one cell that a mandate may open: reach under
    the operator's own trust. ``ask`` and ``deny`` tighten. With ``acceptance`` a person must accept
    the evidence before the item is completed (B11.11).
    """

    given_by: str
    trust: Trust
    ask: frozenset[EffectClass] = frozenset()
    deny: frozenset[EffectClass] = frozenset()
    reach_allowed: bool = False
    acceptance: bool = False


def taint(inputs: Iterable[Trust]) -> Trust:
    """Return the least trusted of all inputs; nothing read at all is the operator's."""
    return min(inputs, default=Trust.OPERATOR)


def decide(mandate: Mandate, tainted: Trust, effect: EffectClass) -> Decision:
    """Decide on an effect; the severest of table and mandate wins."""
    said = TABLE[tainted][effect]
    if effect is EffectClass.REACH and tainted is Trust.OPERATOR and mandate.reach_allowed:
        said = Decision.ALLOW
    if effect in mandate.deny:
        return Decision.DENY
    if effect in mandate.ask:
        return max(said, Decision.ASK, key=_SEVERITY.__getitem__)
    return said


_BY_KIND: Final[Mapping[ActorKind, Trust]] = {
    ActorKind.OPERATOR: Trust.OPERATOR,
    ActorKind.SYSTEM: Trust.OPERATOR,
    ActorKind.SELF: Trust.MEMBER,
    ActorKind.MEMBER: Trust.MEMBER,
    ActorKind.CONTACT: Trust.CONTACT,
    ActorKind.BOT: Trust.STRANGER,
    ActorKind.STRANGER: Trust.STRANGER,
}


def trust_of(kind: ActorKind) -> Trust:
    """Return the trust of an actor's kind; of bots the configuration says more."""
    return _BY_KIND[kind]


def instructs(kind: ActorKind) -> bool:
    """Say whether an actor's words are instructions; everybody else's are material (B14.1)."""
    return kind in {ActorKind.OPERATOR, ActorKind.MEMBER}
