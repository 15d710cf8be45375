"""Edit: where an edit or a deletion goes; it changes a trigger, and is no new request (B1.4)."""

from __future__ import annotations

from upright.api import ActorKind
from upright.core.gate import Judgement, Verdict
from upright.core.ids import SessionId
from upright.core.routing import Delivery, Route
from upright.core.trigger import Disposition


def route(
    judgement: Judgement,
    actor: ActorKind,
    changed: Disposition | None,
    readers: tuple[SessionId, ...],
) -> Route:
    """Route an edit on a thread that nobody follows: it opens no work and wakes nobody.

    *changed* is what became of the trigger that it changes, None when that is not known here;
    *readers* are the live sessions that were given it: they see the edit with what wakes them
    next. What a person holds stays with that person; a request that was added by an edit, or to
    something that we never saw, is held for one.
    """
    if actor is ActorKind.SELF:
        return _nowhere(Disposition.IGNORED, "our own output")
    if readers:
        deliveries = tuple(Delivery(session=session, wake=False) for session in readers)
        reason = f"context without a wake for {len(readers)} that have what it changes"
        return Route(disposition=Disposition.JOINED, deliveries=deliveries, reason=reason)
    if changed is Disposition.HELD:
        return _nowhere(Disposition.HELD, "it changes what is held for the operator")
    if judgement.verdict is Verdict.EXPLICIT:
        return _nowhere(Disposition.HELD, "an edit is no new request: held for the operator")
    return _nowhere(Disposition.IGNORED, "an edit is no new request")


def _nowhere(disposition: Disposition, reason: str) -> Route:
    return Route(disposition=disposition, deliveries=(), reason=reason)
