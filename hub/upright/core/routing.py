"""Routing: which thread a trigger belongs to, and whose inbox it goes to (B6).

Two pure functions. :func:`join` is the one joining rule (B6.10): keys that a connector says
belong together are one thread. :func:`route` gives each trigger one disposition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from upright.api import ActorKind, Context
from upright.core.gate import Judgement, Verdict
from upright.core.ids import SessionId, ThreadId
from upright.core.mandate import Trust
from upright.core.trigger import Disposition, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Where a trigger belongs.

    ``thread`` is None when a new thread must be made. ``learn`` are keys that belong to it from
    now on; ``links`` are other threads whose subscribers share what comes.
    """

    thread: ThreadId | None
    learn: tuple[str, ...]
    links: tuple[ThreadId, ...]


def join(context: Context, known: Mapping[str, ThreadId], trust: Trust) -> Join:
    """Find the thread: by its own key, else by the first join key that is known.

    Other known keys become links. What a text merely mentions (``related``) is linked only for a
    member or an operator: a stranger's sentence opens no door.
    """
    keys = tuple(dict.fromkeys(key for key in (context.thread, *context.joins) if key))
    found = tuple(dict.fromkeys(known[key] for key in keys if key in known))
    thread = found[0] if found else None
    learn = tuple(key for key in keys if key not in known)
    mentioned = tuple(known[key] for key in context.related if key in known)
    shared = found[1:] + (mentioned if trust >= Trust.MEMBER else ())
    links = tuple(dict.fromkeys(other for other in shared if other != thread))
    return Join(thread=thread, learn=learn, links=links)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One trigger in one session's inbox, with or without a wake."""

    session: SessionId
    wake: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A trigger's one disposition, the deliveries that follow from it, and why."""

    disposition: Disposition
    deliveries: tuple[Delivery, ...]
    reason: str


def route(
    judgement: Judgement,
    origin: Origin,
    subscribers: tuple[SessionId, ...],
    router: SessionId | None,
) -> Route:
    """Route a judged trigger.

    *subscribers* are the live ones, of the thread and of the threads linked with it: a finished
    worker is never among them (B6.6). *router* is None while no model is configured (B17.5). Our
    own output starts nothing, whatever a rule says of it (B1.5).
    """
    if subscribers:
        return _pass_through(judgement, origin, subscribers)
    if origin.actor.kind is ActorKind.SELF:
        return Route(disposition=Disposition.IGNORED, deliveries=(), reason="our own output")
    match judgement.verdict:
        case Verdict.IGNORE:
            return Route(disposition=Disposition.IGNORED, deliveries=(), reason=judgement.reason)
        case Verdict.EXPLICIT if router is not None:
            to_router = (Delivery(session=router, wake=True),)
            reason = "nobody follows this thread: the router decides"
            return Route(disposition=Disposition.STARTED, deliveries=to_router, reason=reason)
        case Verdict.EXPLICIT:
            return _held("no model is configured: held for the operator")
        case Verdict.CANDIDATE:
            return _held("a candidate that no policy accepts: held for the operator")
        case _:
            assert_never(judgement.verdict)


def _held(reason: str) -> Route:
    return Route(disposition=Disposition.HELD, deliveries=(), reason=reason)


def _pass_through(
    judgement: Judgement, origin: Origin, subscribers: tuple[SessionId, ...]
) -> Route:
    by_us = origin.actor.kind is ActorKind.SELF
    ruled_out = judgement.verdict is Verdict.IGNORE and not judgement.by_mode
    wake = not ruled_out and not by_us
    return Route(
        disposition=Disposition.WOKE if wake else Disposition.JOINED,
        deliveries=tuple(Delivery(session=session, wake=wake) for session in subscribers),
        reason=f"passed through to {len(subscribers)} that follow the thread"
        if wake
        else f"context without a wake: {judgement.rule}",
    )
