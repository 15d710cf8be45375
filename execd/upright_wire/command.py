"""Commands: the life of one command as a table, the same on both sides of the link (E4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from upright_wire.errors import FrameError, IllegalMoveError


class State(StrEnum):
    """Where a command is; FINAL never changes."""

    RECEIVED = "received"
    AWAITING_CONSENT = "awaiting_consent"
    ACCEPTED = "accepted"
    STARTED = "started"
    FINAL = "final"


class Started(StrEnum):
    """Whether the program ran at all; only ``no`` may be tried again without a person."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Ending(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    KILLED = "killed"
    SPAWN_FAILED = "spawn_failed"
    DENIED = "denied"
    EXPIRED = "expired"
    LOST = "lost"


class Stream(StrEnum):
    """The byte streams of a command."""

    STDIN = "stdin"
    STDOUT = "stdout"
    STDERR = "stderr"


class Refusal(StrEnum):
    """Why an ``exec`` is refused without touching what is known under its id."""

    CONFLICT = "conflict"  # the same id with another digest
    STALE_EPOCH = "stale_epoch"  # an older lease than one seen for this session
    BAD_DIGEST = "bad_digest"  # the spec is not what its digest says


# ------------------------------------------------------------------ how it ended
@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """Bytes of a stream that were counted and not kept, by their place in the whole stream."""

    offset: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """One stream in full: how many bytes the command wrote, their SHA-256, and what is not kept."""

    bytes: int = 0
    sha256: str | None = None
    omitted: tuple[Omitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that could not be ended."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The one true end of a command.

    ``number`` is the exit code (exited), the signal (signaled) or the errno (spawn_failed);
    ``text`` the rule (denied) or the reason (lost, and freely elsewhere). ``pipe_held``: a
    descendant kept the output open after the end. ``env_dropped`` names what was not set.

    Raises:
        FrameError: the parts contradict each other.
    """

    ending: Ending
    started: Started
    number: int | None = None
    text: str | None = None
    stdout: Totals = Totals()
    stderr: Totals = Totals()
    survivors: tuple[Process, ...] = ()
    pipe_held: bool = False
    env_dropped: tuple[str, ...] = ()
    elapsed_ms: int = 0
    cpu_ms: int | None = None
    peak_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.started not in STARTED_OF[self.ending]:
            raise FrameError(ending=self.ending, started=self.started)
        if (self.ending in NUMBERED) is (self.number is None):
            raise FrameError(ending=self.ending, number=self.number)
        if self.ending in EXPLAINED and not self.text:
            raise FrameError(ending=self.ending, text=self.text)


STARTED_OF: Final[Mapping[Ending, frozenset[Started]]] = {
    Ending.EXITED: frozenset({Started.YES}),
    Ending.SIGNALED: frozenset({Started.YES}),
    Ending.TIMED_OUT: frozenset({Started.YES}),
    Ending.CANCELLED: frozenset({Started.YES, Started.NO}),
    Ending.KILLED: frozenset({Started.YES}),
    Ending.SPAWN_FAILED: frozenset({Started.NO}),
    Ending.DENIED: frozenset({Started.NO}),
    Ending.EXPIRED: frozenset({Started.NO, Started.UNKNOWN}),
    Ending.LOST: frozenset(Started),
}
NUMBERED: Final = frozenset({Ending.EXITED, Ending.SIGNALED, Ending.SPAWN_FAILED})
EXPLAINED: Final = frozenset({Ending.DENIED, Ending.LOST})


# ------------------------------------------------------------------ the table
@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The owner's rules want a person's consent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """It may run, and its spec is safely on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The program runs."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """It is over, run or not."""

    outcome: Outcome


Event = Ask | Allow | Begin | End

TRANSITIONS: Final[Mapping[tuple[State, type[Event]], State]] = {
    (State.RECEIVED, Ask): State.AWAITING_CONSENT,
    (State.RECEIVED, Allow): State.ACCEPTED,
    (State.RECEIVED, End): State.FINAL,
    (State.AWAITING_CONSENT, Allow): State.ACCEPTED,
    (State.AWAITING_CONSENT, End): State.FINAL,
    (State.ACCEPTED, Begin): State.STARTED,
    (State.ACCEPTED, End): State.FINAL,
    (State.STARTED, End): State.FINAL,
}

_UNRUN: Final = frozenset({Ending.CANCELLED, Ending.DENIED, Ending.EXPIRED, Ending.LOST})
ENDINGS: Final[Mapping[State, frozenset[Ending]]] = {
    State.RECEIVED: frozenset({*_UNRUN, Ending.SPAWN_FAILED}),
    State.AWAITING_CONSENT: _UNRUN,
    State.ACCEPTED: frozenset({*_UNRUN, Ending.SPAWN_FAILED}),
    State.STARTED: frozenset(Ending) - {Ending.SPAWN_FAILED, Ending.DENIED, Ending.EXPIRED},
    State.FINAL: frozenset(),
}
_ORDER: Final = tuple(State)


def step(state: State, event: Event) -> State:
    """Return the state after *event*.

    Raises:
        IllegalMoveError: there is no such move, or this end can't come from this state.
    """
    after = TRANSITIONS.get((state, type(event)))
    if after is None or (isinstance(event, End) and not may_end(state, event.outcome)):
        raise IllegalMoveError(state=state, event=type(event).__name__)
    return after


def may_end(state: State, outcome: Outcome) -> bool:
    """Say whether a command in *state* can end so; what ran, ran, and what did not, did not."""
    has_started = outcome.started is Started.YES
    return outcome.ending in ENDINGS[state] and has_started is (state is State.STARTED)


def later(known: State, reported: State) -> State:
    """Return the later of two states: how the far side follows, which may miss moves in between."""
    return max(known, reported, key=_ORDER.index)


# ------------------------------------------------------------------ what an exec meets
@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Nothing is known under this id: take it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The same command again: tell its present state, start nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Start nothing, change nothing, say why."""

    refusal: Refusal


Admission = Start | Replay | Refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An ``exec`` as it came: the digest it names, and that of the spec that came with it."""

    digest: str
    actual_digest: str
    lease_epoch: int


def admit(offer: Offer, *, known_digest: str | None, newest_epoch: int) -> Admission:
    """Judge an ``exec`` (E4.3): *known_digest* is that of the command already held under its id.

    *newest_epoch* is the highest lease epoch seen for the session (0: none). A known command is
    replayed whatever the epoch: that starts nothing.
    """
    if offer.digest != offer.actual_digest:
        return Refuse(refusal=Refusal.BAD_DIGEST)
    if known_digest is not None:
        same = offer.digest == known_digest
        return Replay() if same else Refuse(refusal=Refusal.CONFLICT)
    if offer.lease_epoch < newest_epoch:
        return Refuse(refusal=Refusal.STALE_EPOCH)
    return Start()
