"""Routing: which thread a trigger belongs to, and whose inbox it goes to (B6).

Two pure functions. :func:`join` is the one joining rule (B6.10): keys that a connector says
belong together are one thread. :func:`route` gives each trigger one disposition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from upright.api import ActorKind, Context
from upright.core.gate import Judgement, Verdict
from upright.core.ids import SessionId, ThreadId
from upright.core.mandate import Trust
from upright.core.trigger import Disposition, Origin

MAX_PAGES: Final = 8
MAX_SCANNED_CHARS: Final = 20_000
_URL: Final = re.compile(r"https?://[^\s<>()\[\]{}\"'`|\\]{3,500}")


def page(url: str) -> str:
    """Return the key of a page: its address without fragment, or empty when it is none.

    A comment's address is its pull request's with a fragment: both are one page.
    """
    found = _URL.match(url)
    return f"url:{found[0].partition('#')[0].rstrip('/.,;:!?')}" if found else ""


def pages(text: str) -> tuple[str, ...]:
    """Return the keys of the pages that a text links, in order, at most ``MAX_PAGES``."""
    if "://" not in text:
        return ()
    found = dict.fromkeys(page(hit[0]) for hit in _URL.finditer(text[:MAX_SCANNED_CHARS]))
    return tuple(found)[:MAX_PAGES]


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


class PassThrough(StrEnum):
    """Which triggers on a followed thread go to its followers by code (B6.9)."""

    ALL = "all"  # every one, and none of them wakes the router
    PEOPLE = "people"  # every one; what bots and CI say goes to the router as well
    NONE = "none"  # none that would wake: the router forwards everything


def route(
    judgement: Judgement,
    origin: Origin,
    subscribers: tuple[SessionId, ...],
    router: SessionId | None,
    *,
    passes: PassThrough = PassThrough.ALL,
) -> Route:
    """Route a judged trigger.

    *subscribers* are the live ones, of the thread and of the threads linked with it: a finished
    worker is never among them (B6.6). *router* is None while no model is configured (B17.5):
    *passes* counts for nothing then. Our own output starts nothing, whatever a rule says of it
    (B1.5).
    """
    if subscribers:
        return _pass_through(judgement, origin, subscribers, _second(origin, router, passes))
    if origin.actor.kind is ActorKind.SELF:
        return Route(disposition=Disposition.IGNORED, deliveries=(), reason="our own output")
    match judgement.verdict:
        case Verdict.IGNORE:
            return Route(disposition=Disposition.IGNORED, deliveries=(), reason=judgement.reason)
        case Verdict.EXPLICIT if router is not None:
            reason = "nobody follows this thread: the router decides"
            return _to_router(router, reason)
        case Verdict.EXPLICIT:
            return _held("no model is configured: held for the operator")
        case Verdict.CANDIDATE:
            return _held("a candidate that no policy accepts: held for the operator")
        case _:
            assert_never(judgement.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Second:
    """The router, where the setting lets it see a followed thread; ``alone``: only it is woken."""

    router: SessionId
    alone: bool


def _second(origin: Origin, router: SessionId | None, passes: PassThrough) -> _Second | None:
    if router is None or passes is PassThrough.ALL:
        return None
    if passes is PassThrough.NONE:
        return _Second(router=router, alone=True)
    is_bot = origin.actor.kind is ActorKind.BOT
    return _Second(router=router, alone=False) if is_bot else None


def _to_router(router: SessionId, reason: str) -> Route:
    deliveries = (Delivery(session=router, wake=True),)
    return Route(disposition=Disposition.STARTED, deliveries=deliveries, reason=reason)


def _held(reason: str) -> Route:
    return Route(disposition=Disposition.HELD, deliveries=(), reason=reason)


def _pass_through(
    judgement: Judgement,
    origin: Origin,
    subscribers: tuple[SessionId, ...],
    second: _Second | None,
) -> Route:
    """Deliver to all that follow: what a rule ignores, and our own output, as context alone."""
    by_us = origin.actor.kind is ActorKind.SELF
    ruled_out = judgement.verdict is Verdict.IGNORE and not judgement.by_mode
    wake = not ruled_out and not by_us
    if second is not None and second.alone and wake:
        return _to_router(second.router, "nothing is passed through: the router forwards it")
    to = tuple(Delivery(session=session, wake=wake) for session in subscribers)
    if not wake:
        reason = f"context without a wake: {judgement.rule}"
        return Route(disposition=Disposition.JOINED, deliveries=to, reason=reason)
    reason = f"passed through to {len(subscribers)} that follow the thread"
    if second is not None:
        to += (Delivery(session=second.router, wake=True),)
        reason += ", and to the router"
    return Route(disposition=Disposition.WOKE, deliveries=to, reason=reason)
