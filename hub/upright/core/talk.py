"""Talk: what was said around a trigger, as far as it is known, and how a model is shown it.

Each message has the trust of who wrote it: reading it taints like the trigger itself would (B14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from upright.api import Message
from upright.core.context import NAME_CAP_BYTES, TRIGGER_CAP_BYTES, cut
from upright.core.ids import TriggerId
from upright.core.mandate import Trust, taint
from upright.core.trigger import People, known

MOST: Final = 20  # messages on one side
CAP_BYTES: Final = 16 * 1024  # of all texts together


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """One message beside a trigger; ``id`` is the hub's own where it is a stored trigger."""

    message: Message
    trust: Trust
    trigger: TriggerId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The talk around a trigger, oldest first.

    ``whole``: nothing is known to be missing. ``told_by`` is ``service`` or ``hub``.
    """

    before: tuple[Near, ...] = ()
    after: tuple[Near, ...] = ()
    whole: bool = False
    told_by: str = "hub"

    @property
    def trust(self) -> Trust:
        """The least trusted of all that is shown."""
        return taint(one.trust for one in (*self.before, *self.after))


def near(source: str, messages: Sequence[Message], people: People) -> tuple[Near, ...]:
    """Return a service's messages with the trust that configuration gives to who wrote them."""
    told = []
    for message in messages:
        who = known(message.author, source, people)
        told.append(Near(message=message, trust=who.trust))
    return tuple(told)


def told(around: Around, *, where: str) -> dict[str, Any]:
    """Return what the model reads; the texts share the cap, and *where* has the trigger."""
    count = len(around.before) + len(around.after)
    share = min(TRIGGER_CAP_BYTES, CAP_BYTES // max(count, 1))
    return {
        "trigger": where,
        "role": "material",
        "trust": around.trust.label,
        "told_by": around.told_by,
        "whole": around.whole,
        "before": [_shown(one, share, where) for one in around.before],
        "after": [_shown(one, share, where) for one in around.after],
    }


def _shown(one: Near, share: int, where: str) -> dict[str, str]:
    message = one.message
    by = message.author.name or message.author.id
    shown = {"by": by[:NAME_CAP_BYTES], "trust": one.trust.label}
    if one.trigger is not None:
        shown["id"] = one.trigger
    if message.at is not None:
        shown["at"] = _stamp(message.at)
    return {**shown, "text": cut(message.text, share, where=one.trigger or where)}


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
