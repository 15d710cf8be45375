"""Ports: what the engine and the agent ask of the world, as Protocols; wired in compose.

The database holds the truth. Whatever is called a hint here may be lost or doubled without harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from upright.core.agenda import Agenda
from upright.core.ids import DeviceId, SessionId
from upright.core.talk import Around
from upright.core.transcript import Message, ToolCall, ToolSpec
from upright.core.trigger import StoredTrigger

T = TypeVar("T")


class Clock(Protocol):
    """The time, and the only way to wait for it."""

    def now(self) -> datetime:
        """Return the wall clock, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Wait."""
        ...


class IdSource(Protocol):
    """Makes unique ids that sort by time."""

    def new(self, kind: str) -> str:
        """Return ``<prefix>_<26 letters>``; *kind* is a key of ``core.ids.PREFIXES``."""
        ...


# ------------------------------------------------------------------ the model
class Rung(StrEnum):
    """How an endpoint is made to answer in a shape, the surest way first."""

    SCHEMA = "schema"  # by a JSON schema that it keeps to
    JSON = "json"  # some JSON, of the shape that the prompt describes
    TOOL = "tool"  # by a tool that it must call
    PLAIN = "plain"  # by asking for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The shape that an answer shall have: a JSON schema under a name (letters, digits, ``_``)."""

    rung: Rung
    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One model call. ``role`` picks the model (``router``, ``worker``); ``session`` is stable.

    Messages are sent in this order and never changed: the prompt of a session's next request
    starts with the bytes of this one. With a ``form`` the answer is one JSON object of that shape,
    as text or as the arguments of a call.
    """

    role: str
    session: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    form: Form | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a call used, in tokens; ``cached`` is the part of ``input`` read from a cache."""

    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What the model said: text, tool calls, or both; every call has an id unique in the session.

    ``cost_usd_micros`` is None when the price isn't known. ``attempts`` counts the HTTP tries;
    ``wasted`` is what those of them that broke off are thought to have used.
    """

    model: str
    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    first_byte_s: float
    seconds: float
    cost_usd_micros: int | None = None
    attempts: int = 1
    wasted: Reckoned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """What a call that was cut off is thought to have used: nobody sends a bill that says it."""

    model: str
    usage: Usage
    cost_usd_micros: int | None = None


class ModelError(Exception):
    """The model gave no answer that can be used."""

    code = "model.failed"


class ModelUnavailableError(ModelError):
    """The model can't be reached, is overloaded or broke off; try later.

    ``attempts`` were made, and ``wasted`` is what they are thought to have used.
    """

    code = "model.unavailable"

    def __init__(
        self,
        reason: str,
        *,
        retry_after_s: float | None = None,
        attempts: int = 0,
        wasted: Reckoned | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.attempts = attempts
        self.wasted = wasted


class ModelAuthError(ModelError):
    """The model's service refuses the key, or the bill; a person must act."""

    code = "model.auth"


class ModelRequestError(ModelError):
    """The model's service refuses the request itself; the same request won't work later."""

    code = "model.request"


class ModelToolsError(ModelRequestError):
    """The model can't call tools, so it can neither route nor work; another one must be named."""

    code = "model.tools"


class ModelHeldError(ModelError):
    """No call is made: a budget is used up, or a person must mend the endpoint first (B16).

    ``until_ms`` is when it ends by itself, in epoch milliseconds; None: a person ends it.
    """

    code = "model.held"

    def __init__(self, reason: str, *, until_ms: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.until_ms = until_ms


class ChatModel(Protocol):
    """A model behind a streamed chat endpoint."""

    async def complete(self, request: ChatRequest, on_part: Callable[[int], None]) -> ChatReply:
        """Return the whole reply; cancelling the call closes the stream at once.

        *on_part* is told how many characters each part brought, as it comes.

        Raises:
            ModelUnavailableError: after its own bounded tries.
            ModelAuthError: the key or the bill.
            ModelRequestError: the request.
        """
        ...

    def reckon(self, request: ChatRequest, said_chars: int) -> Reckoned:
        """Say what a call used that was cut off after so many characters."""
        ...


# ------------------------------------------------------------------ answers in a shape
@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(Generic[T]):
    """What is asked for: a JSON schema, and ``parse`` for what came.

    ``parse`` takes the decoded JSON and raises ValueError with a sentence that the model can use.
    """

    name: str
    schema: Mapping[str, Any]
    parse: Callable[[object], T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped(Generic[T]):
    """What came: the value, by which rung, and every reply that it took, each to be charged."""

    value: T
    rung: Rung
    replies: tuple[ChatReply, ...]


class ModelShapeError(ModelError):
    """The model did not answer in the shape that was asked for, although it was told what is wrong.

    ``replies`` are to be charged all the same.
    """

    code = "model.shape"

    def __init__(self, reason: str, replies: tuple[ChatReply, ...]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.replies = replies


class Structured(Protocol):
    """A model that answers in a shape."""

    async def ask(self, request: ChatRequest, shape: Shape[T]) -> Shaped[T]:
        """Return an answer in the shape, by the surest way that the endpoint knows.

        Raises:
            ModelShapeError: it answered otherwise, twice.
            ModelError: as ``ChatModel.complete``.
        """
        ...


# ------------------------------------------------------------------ what performs effects
class Devices(Protocol):
    """The links to devices; commands, their cancels and their input are rows."""

    def hint(self, devices: Collection[DeviceId]) -> None:
        """Say that these devices may have something to be sent."""
        ...

    def online(self) -> frozenset[DeviceId]:
        """Return the devices with a live link to this hub."""
        ...


class Outward(Protocol):
    """Performs what is in the outbox."""

    def hint(self) -> None:
        """Say that the outbox may hold something that is due."""
        ...


# ------------------------------------------------------------------ what others said
@dataclass(frozen=True, slots=True, kw_only=True)
class TalkQuestion:
    """What was said around this trigger, at most so many messages on each side?"""

    trigger: StoredTrigger
    before: int
    after: int


Talk = Callable[[TalkQuestion], Awaitable[Around | None]]
"""Asks the service that a trigger came from, a bounded time; None: it can't tell. Never raises."""


async def untold(_question: TalkQuestion) -> Around | None:
    """Ask nobody."""
    return None


# ------------------------------------------------------------------ what takes up time
@dataclass(frozen=True, slots=True, kw_only=True)
class AgendaQuestion:
    """What takes up time between two instants?"""

    since: datetime
    until: datetime


AgendaTeller = Callable[[AgendaQuestion], Awaitable[Agenda]]
"""Asks every calendar, a bounded time; those that can't tell are named. Never raises."""


async def unkept(_question: AgendaQuestion) -> Agenda:
    """Ask nobody: there is no calendar."""
    return Agenda()


# ------------------------------------------------------------------ who runs next
@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write to one session: every commit checks ``epoch`` (B8.5)."""

    session: SessionId
    epoch: int


Handler = Callable[[Lease], Awaitable[None]]


class Engine(Protocol):
    """Claims sessions that are ready, one turn at a time each."""

    def hint(self, sessions: Collection[SessionId]) -> None:
        """Say that these sessions may have something to do."""
        ...

    async def run(self, handle: Handler) -> None:
        """Claim, renew, hand over; until cancelled, and then let running steps end."""
        ...
