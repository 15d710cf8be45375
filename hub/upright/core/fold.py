"""Fold: which trigger wakes a session at once, and which waits for a quiet window's end (B2.5).

Leading edge: the first ordinary trigger wakes its session now and opens a window; what follows
waits for ``quiet`` after the last, and never longer than ``most`` after the opening. The wake at
the end of a window in which something was folded begins the next one, so that a steady stream
costs one wake in each ``most``. What presses opens no window, wakes at once, and the turn takes
along what was folded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from upright.api import ActorKind
from upright.core.gate import Judgement, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """How long a window lasts after the last trigger, and after its opening, in milliseconds."""

    quiet_ms: int = 2_000
    most_ms: int = 30_000


QUIET: Final = Quiet()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A quiet window: when it was opened, and when what it holds is due; epoch milliseconds."""

    opened_ms: int
    due_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a session stands: its window, when it is ready, whether that is a try after a failure.

    ``ready_ms`` is None while nothing wakes it; under a lease it is in the past.
    """

    window: Window | None = None
    ready_ms: int | None = None
    failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What becomes of a session by one trigger; ``folded``: it is no reason for a turn yet."""

    window: Window | None
    ready_ms: int
    folded: bool


def presses(judgement: Judgement, actor: ActorKind, *, edits: bool) -> bool:
    """Say whether a trigger wakes at once, and opens no window: it is urgent or a request.

    An edit is no new request (B1.4): only an operator's, or an urgent one, presses.
    """
    requested = judgement.verdict is Verdict.EXPLICIT and not edits
    return requested or judgement.urgent or actor is ActorKind.OPERATOR


def fold(standing: Standing, now_ms: int, quiet: Quiet, *, pressing: bool) -> Folding:
    """Decide when a session is ready, now that a trigger has come for it.

    A session that tries again after a failure is not tried earlier by what doesn't press. A clock
    that went back never makes a window longer than ``quiet`` from now.
    """
    window, ready_ms = standing.window, standing.ready_ms
    if pressing:
        return Folding(window=window, ready_ms=_soonest(ready_ms, now_ms), folded=False)
    if standing.failing and ready_ms is not None and ready_ms > now_ms:
        return Folding(window=window, ready_ms=ready_ms, folded=False)
    opened_ms = None if window is None else _holds_since(window, now_ms, quiet)
    if window is None or opened_ms is None:
        opened = Window(opened_ms=now_ms, due_ms=now_ms + min(quiet.quiet_ms, quiet.most_ms))
        return Folding(window=opened, ready_ms=_soonest(ready_ms, now_ms), folded=False)
    last_ms = max(now_ms, opened_ms + 1)  # so that a window shows whether it holds something
    due_ms = min(last_ms + quiet.quiet_ms, opened_ms + quiet.most_ms)
    moves = ready_ms == window.due_ms > now_ms  # it is ready at the window's end, now a later one
    known_ms = None if moves else ready_ms
    return Folding(
        window=Window(opened_ms=opened_ms, due_ms=due_ms),
        ready_ms=_soonest(known_ms, due_ms),
        folded=True,
    )


def _soonest(ready_ms: int | None, other_ms: int) -> int:
    return other_ms if ready_ms is None else min(ready_ms, other_ms)


def _holds_since(window: Window, now_ms: int, quiet: Quiet) -> int | None:
    """Return when the window began that holds *now_ms*: this one, or the one that follows it."""
    if now_ms < window.due_ms:
        return min(window.opened_ms, now_ms)
    held_something = window.due_ms > window.opened_ms + min(quiet.quiet_ms, quiet.most_ms)
    follows = held_something and now_ms < window.due_ms + quiet.quiet_ms
    return window.due_ms if follows else None
