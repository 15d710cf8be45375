"""Outbox: outward effects, each visible once, or listed as unknown (B15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from upright.core.backoff import Backoff
from upright.core.errors import IllegalMoveError
from upright.core.machine import move


class OutboxState(StrEnum):
    """The states of an effect; the last four are terminal."""

    HELD = "held"
    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    DEAD = "dead"


TERMINAL: Final = frozenset(
    {OutboxState.SENT, OutboxState.UNKNOWN, OutboxState.EXPIRED, OutboxState.DEAD}
)


@dataclass(frozen=True, slots=True)
class Released:
    """A person, or a rule, lets a held effect go."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A sender took it; from here on it may become visible."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The provider gave a receipt."""


@dataclass(frozen=True, slots=True)
class NotDelivered:
    """It certainly did not become visible; it may be tried again."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The destination is gone, or refuses it for good."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may be visible, and looking did not settle it."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The sender died; the next one looks before it sends."""


@dataclass(frozen=True, slots=True)
class TooLate:
    """Its time passed before it was sent."""


@dataclass(frozen=True, slots=True)
class Discarded:
    """Nobody wants it any more."""


OutboxEvent = (
    Released
    | Claimed
    | Delivered
    | NotDelivered
    | Refused
    | Uncertain
    | Abandoned
    | TooLate
    | Discarded
)

TRANSITIONS: Final[Mapping[tuple[OutboxState, type], OutboxState]] = {
    (OutboxState.HELD, Released): OutboxState.PENDING,
    (OutboxState.HELD, Discarded): OutboxState.DEAD,
    (OutboxState.HELD, TooLate): OutboxState.EXPIRED,
    (OutboxState.PENDING, Claimed): OutboxState.SENDING,
    (OutboxState.PENDING, TooLate): OutboxState.EXPIRED,
    (OutboxState.PENDING, Discarded): OutboxState.DEAD,
    (OutboxState.SENDING, Delivered): OutboxState.SENT,
    (OutboxState.SENDING, NotDelivered): OutboxState.PENDING,
    (OutboxState.SENDING, Refused): OutboxState.DEAD,
    (OutboxState.SENDING, Uncertain): OutboxState.UNKNOWN,
    (OutboxState.SENDING, Abandoned): OutboxState.PENDING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """How far an effect is. ``tries`` counts claims; ``due_at_ms`` is when the next may be.

    ``may_be_visible``: a sender died while sending it, and no later try has settled that.
    """

    state: OutboxState
    tries: int = 0
    due_at_ms: int = 0
    expires_at_ms: int | None = None
    reason: str = ""
    may_be_visible: bool = False


def step(
    item: OutboxItem,
    event: OutboxEvent,
    *,
    now_ms: int,
    wait_s: float = 0.0,
    backoff: Backoff | None = None,
    reason: str = "",
) -> OutboxItem:
    """Move an effect. After the last try NotDelivered is DEAD, and Abandoned is UNKNOWN.

    Whichever it is, it blocks nothing behind it. What may be visible from a try whose sender died
    never ends as DEAD or EXPIRED, which say that nobody sees it: it is UNKNOWN, too.

    *wait_s* is the pause before the next try; it counts for NotDelivered only.
    """
    state = move(TRANSITIONS, item.state, event)
    tries = item.tries + isinstance(event, Claimed)
    if isinstance(event, NotDelivered) and backoff is not None and backoff.exhausted(tries):
        state, reason = OutboxState.DEAD, f"given up after {tries} tries: {reason}"
    if isinstance(event, Abandoned) and backoff is not None and backoff.exhausted(tries):
        state, reason = OutboxState.UNKNOWN, f"its sender ended {tries} times while sending it"
    may_be_visible = item.may_be_visible or isinstance(event, Abandoned)
    if may_be_visible and state in {OutboxState.DEAD, OutboxState.EXPIRED}:
        reason = f"a try whose sender ended may have worked; it is {state.value}: {reason}"
        state = OutboxState.UNKNOWN
    due = now_ms + int(1000 * wait_s) if isinstance(event, NotDelivered) else item.due_at_ms
    return replace(
        item,
        state=state,
        tries=tries,
        due_at_ms=due,
        reason=reason,
        may_be_visible=may_be_visible,
    )


def expired(item: OutboxItem, now_ms: int) -> bool:
    """Say whether an unsent effect has passed its time."""
    return item.expires_at_ms is not None and now_ms >= item.expires_at_ms


RETRIABLE: Final = frozenset({OutboxState.UNKNOWN, OutboxState.EXPIRED, OutboxState.DEAD})


def revive(item: OutboxItem, *, now_ms: int, life_ms: int | None) -> OutboxItem:
    """Give a settled effect that was not sent a new life, because a person asks for it (B15.2).

    It is the one way out of a terminal state, and no code takes it by itself. What may be visible
    already keeps that mark and counts one try, so that its sender looks before it sends.

    Raises:
        IllegalMoveError: it was sent, or is not settled.
    """
    if item.state not in RETRIABLE:
        raise IllegalMoveError(state=item.state.value, event="Retried")
    may_be_visible = item.may_be_visible or item.state is OutboxState.UNKNOWN
    return OutboxItem(
        state=OutboxState.PENDING,
        tries=int(may_be_visible),
        due_at_ms=now_ms,
        expires_at_ms=None if life_ms is None else now_ms + life_ms,
        reason="a person asked for it again",
        may_be_visible=may_be_visible,
    )
