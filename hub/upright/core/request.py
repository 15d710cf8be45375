"""Requests to a person: pairings, devices, approvals, questions; the first human answer wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.core.machine import move


class RequestKind(StrEnum):
    """What a person is asked for."""

    PAIRING = "pairing"
    APPROVAL = "approval"
    QUESTION = "question"
    DEVICE = "device"  # about a paired one: wider capabilities, or a key that two machines use
    ACCEPTANCE = "acceptance"  # of a completing item's evidence


class RequestState(StrEnum):
    """The states of a request; all but ASKED are terminal. Expiry is never a yes."""

    ASKED = "asked"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Answered:
    """An authenticated person answered."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Nobody answered in time."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The answer is not needed any more."""


RequestEvent = Answered | TimePassed | Withdrawn

TRANSITIONS: Final[Mapping[tuple[RequestState, type], RequestState]] = {
    (RequestState.ASKED, Answered): RequestState.ANSWERED,
    (RequestState.ASKED, TimePassed): RequestState.EXPIRED,
    (RequestState.ASKED, Withdrawn): RequestState.WITHDRAWN,
}


SHORTEST_DIGEST: Final = 8


def names(given: str, digest: str) -> bool:
    """Say whether *given* names a digest: all of it, or its first ``SHORTEST_DIGEST`` or more."""
    return len(given) >= SHORTEST_DIGEST and digest.startswith(given)


def step(state: RequestState, event: RequestEvent) -> RequestState:
    """Move a request; IllegalMoveError once it is settled."""
    return move(TRANSITIONS, state, event)
