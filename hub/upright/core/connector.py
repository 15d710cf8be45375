"""Connectors' life: a connector raises, and one table says what follows (C0.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright.core.machine import move


class ConnectorState(StrEnum):
    """The states of one configured source."""

    LOADING = "loading"
    READY = "ready"
    BACKING_OFF = "backing_off"
    NEEDS_AUTH = "needs_auth"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Started:
    """It signed in and is ready."""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The service can't be reached now."""


@dataclass(frozen=True, slots=True)
class AuthFailed:
    """The service refuses the credentials."""


@dataclass(frozen=True, slots=True)
class Broke:
    """It raised what no connector should."""


@dataclass(frozen=True, slots=True)
class Retried:
    """It is being started again."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A person paused it."""


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The hub stops, or the source was taken out."""


ConnectorEvent = Started | NotReady | AuthFailed | Broke | Retried | Paused | ShutDown

_S = ConnectorState
_UP: Final = (_S.LOADING, _S.READY)
_DOWN: Final = (_S.BACKING_OFF, _S.NEEDS_AUTH, _S.PAUSED, _S.FAILED)

TRANSITIONS: Final[Mapping[tuple[ConnectorState, type], ConnectorState]] = {
    (_S.LOADING, Started): _S.READY,
    **{(state, NotReady): _S.BACKING_OFF for state in _UP},
    **{(state, AuthFailed): _S.NEEDS_AUTH for state in _UP},
    **{(state, Broke): _S.FAILED for state in _UP},
    **{(state, Retried): _S.LOADING for state in _DOWN},
    **{(state, Paused): _S.PAUSED for state in (*_UP, _S.BACKING_OFF, _S.NEEDS_AUTH, _S.FAILED)},
    **{(state, ShutDown): _S.STOPPED for state in (*_UP, *_DOWN)},
}


def step(state: ConnectorState, event: ConnectorEvent) -> ConnectorState:
    """Move a connector."""
    return move(TRANSITIONS, state, event)
