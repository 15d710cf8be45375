"""The door: all that a plugin sees of Upright.

A plugin is a module named by an entry point of the group ``upright``. It hands over typed objects
through a few hooks (:class:`Hooks`); what runs afterwards are async methods on those objects.
Everything here is a frozen value, a Protocol or a typed error; it needs pluggy and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, overload

import pluggy

from upright.secret import Secret
from upright.trigger import (
    Actor,
    ActorKind,
    Address,
    Appointment,
    Channel,
    Code,
    Content,
    Context,
    Destination,
    Effect,
    EffectClass,
    Receipt,
    Trigger,
)

__all__ = [
    "API_VERSION",
    "ENTRY_POINT_GROUP",
    "Actor",
    "ActorKind",
    "Address",
    "Answered",
    "Appointment",
    "Capabilities",
    "Channel",
    "Code",
    "Connector",
    "ConnectorAuthFailedError",
    "ConnectorContext",
    "ConnectorError",
    "ConnectorNotReadyError",
    "ConnectorType",
    "Content",
    "Context",
    "Destination",
    "Effect",
    "EffectClass",
    "Health",
    "Hooks",
    "InboundRequest",
    "Message",
    "Neighbours",
    "PermanentSendError",
    "Probe",
    "Receipt",
    "RetryableSendError",
    "Secret",
    "SecretRef",
    "Trigger",
    "TriggerRejectedError",
    "UnknownSendError",
    "hookimpl",
    "hookspec",
]

API_VERSION: Final = 1
ENTRY_POINT_GROUP: Final = "upright"

hookimpl: Final = pluggy.HookimplMarker("upright")
hookspec: Final = pluggy.HookspecMarker("upright")


# ------------------------------------------------------------------ errors that connectors raise
class ConnectorError(Exception):
    """The connector failed."""


class ConnectorNotReadyError(ConnectorError):
    """The service can't be reached now; it is worth trying later."""

    code = "connector.not_ready"

    def __init__(self, reason: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s


class ConnectorAuthFailedError(ConnectorError):
    """The service refuses our credentials; a person must renew them."""

    code = "connector.auth_failed"


class TriggerRejectedError(ConnectorError):
    """An inbound request is refused; nothing of it is stored. ``status`` is an HTTP 4xx."""

    code = "trigger.rejected"

    def __init__(self, reason: str, *, status: int = 400, code: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.code = code or type(self).code


class RetryableSendError(ConnectorError):
    """It certainly did not become visible; try again, at the soonest after ``after_s`` seconds."""

    code = "send.retryable"

    def __init__(self, reason: str, *, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


class PermanentSendError(ConnectorError):
    """It did not become visible and never will: the destination is gone or refuses it."""

    code = "send.permanent"


class UnknownSendError(ConnectorError):
    """It may have become visible, and looking did not settle it (B15.2)."""

    code = "send.unknown"


# ------------------------------------------------------------------ the connector
@dataclass(frozen=True, slots=True, kw_only=True)
class InboundRequest:
    """A request to ``/hooks/<source>``: header names in lower case, the body as it came.

    Of a key that stands in the query more than once, the last value counts.
    """

    headers: Mapping[str, str]
    body: bytes
    remote: str = ""
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Sequence[Trigger]):
    """The triggers of a webhook, and what its sender wants to hear once they are stored.

    Some want a word of their own back: a challenge that proves who answers, a fixed text. Without
    triggers nothing is stored. The status is always 200.
    """

    triggers: tuple[Trigger, ...] = ()
    text: str
    content_type: str = "text/plain"

    @overload
    def __getitem__(self, index: int) -> Trigger: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trigger, ...]: ...
    def __getitem__(self, index: int | slice) -> Trigger | tuple[Trigger, ...]:
        """Return one of the triggers, or some."""
        return self.triggers[index]

    def __len__(self) -> int:
        """Return how many triggers there are."""
        return len(self.triggers)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret lives: ``keyring:NAME``, ``env:NAME`` or ``file:PATH``."""

    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a live check found: one sentence, and what the credentials may do."""

    ok: bool
    summary: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message beside a trigger: what people said before and after it."""

    id: str
    author: Actor
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The talk around a trigger, oldest first. ``whole``: nothing is known to be missing."""

    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a source's ears are: silence alone is not health.

    ``heard_at``: when the service last gave a sign of life, a heartbeat among them. ``gap`` says
    in one sentence what may have been missed for good; empty when nothing was.
    """

    heard_at: datetime | None = None
    gap: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a connector can do, and its limits.

    ``receives`` webhooks, ``listens`` by itself, ``lists`` what was missed (``backfill``), knows
    ``neighbours`` by the service's history, makes ``remarks`` on what other sources bring, keeps an
    ``agenda`` of its user's time. ``answers``: the service authenticates each message's author, and
    ``Content.typed`` is what they typed: people may answer requests there (B14.3).

    ``destinations`` are the kinds that it sends to; one of the kind ``room`` has the address
    ``(("room", id),)``, and people can be notified there.
    """

    receives: bool = False
    listens: bool = False
    lists: bool = False
    neighbours: bool = False
    remarks: bool = False
    agenda: bool = False
    answers: bool = False
    destinations: tuple[str, ...] = ()
    max_text_chars: int = 65_536
    max_body_bytes: int = 25 * 1024 * 1024


class ConnectorContext(Protocol):
    """What a connector is given when it starts."""

    @property
    def source(self) -> str:
        """The name of the configured source."""
        ...

    @property
    def log(self) -> logging.Logger:
        """A logger of this source."""
        ...

    def now(self) -> datetime:
        """Return the time, aware, UTC."""
        ...

    def secret(self, reference: SecretRef) -> Secret:
        """Resolve a secret; ConnectorAuthFailedError names the reference when it is not there."""
        ...

    async def emit(self, triggers: Sequence[Trigger], *, cursor: str | None = None) -> None:
        """Store triggers, and the cursor that covers them, in one transaction (B1.6)."""
        ...

    async def cursor(self) -> str | None:
        """Return the stored cursor; None when nothing was ever stored."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait, by the hub's clock."""
        ...

    async def sleep_until(self, at: datetime) -> None:
        """Wait until the wall clock shows *at*, however it jumps meanwhile."""
        ...


class Connector(Protocol):
    """One configured source, in a supervised task of its own.

    A connector never sets a state: it raises, and one table in core maps what it raised. Inherit
    from this for what is said here of a connector that only receives.
    """

    async def validate(self) -> Probe:
        """Sign in and look: credentials, scopes, limits."""
        ...

    async def start(self, context: ConnectorContext) -> None:
        """Make clients; return when ready to receive and send."""
        ...

    async def listen(self) -> None:
        """Hear the service out until cancelled, and emit what happens, from the cursor on.

        Runs once after each start. Raise ConnectorNotReadyError when the service is gone: the hub
        waits and starts anew. Returning says that there is nothing to listen to.
        """
        return

    async def stop(self, timeout_s: float) -> None:
        """Close everything within the time; ``listen`` was cancelled before."""
        ...

    def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield what happened since, oldest first: on start, after reconnects, on a schedule.

        *since*: aware, ISO 8601, up to which all is stored; None at the very first. Dedupe keys
        and ``occurred_at`` must be those of the webhook it stands for; overlap does no harm.
        """
        ...

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse a webhook; raise TriggerRejectedError to refuse it.

        Return :class:`Answered` where the sender wants to hear more than that it arrived.
        """
        ...

    async def send(self, effect: Effect) -> Receipt:
        """Perform an effect once; raise a Retryable-, Permanent- or UnknownSendError."""
        ...

    async def neighbours(self, trigger: Trigger, before: int, after: int) -> Neighbours:
        """Return the talk around a trigger, at most so many messages on each side.

        Without a history of the service's own, say nothing: the hub knows what it has stored.
        """
        ...

    def remarks(self, trigger: Trigger) -> tuple[tuple[str, str], ...]:
        """Return facts that this source knows of another one's trigger, before it is stored.

        Quickly and from memory: what is known of the calendar, when a mail invites.
        """
        del trigger
        return ()

    async def agenda(self, since: datetime, until: datetime) -> Sequence[Appointment]:
        """Return what takes up the user's time between two instants, by its start.

        Only asked where :class:`Capabilities` says that there is an agenda. Raise
        ConnectorNotReadyError when the calendar is not known: an empty answer means *free*.
        """
        del since, until
        return ()

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        ...

    def health(self) -> Health:
        """Say when the service last gave a sign of life, and what may have been missed."""
        return Health()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorType:
    """A kind of connector that a plugin offers.

    ``settings`` is a frozen dataclass: its fields are the keys of ``[sources.NAME]``, its types are
    checked, a :class:`SecretRef` takes a reference. ``make`` gets the name and an instance of it.
    """

    kind: str
    summary: str
    settings: type[Any]
    make: Callable[[str, Any], Connector]


# ------------------------------------------------------------------ the hooks
class Hooks:
    """What a plugin may implement, with ``@hookimpl``. All are synchronous."""

    @hookspec
    def upright_connectors(self) -> Iterable[ConnectorType]:  # type: ignore[empty-body]  # a hook has no body
        """Offer kinds of connectors."""

    @hookspec
    def upright_commands(self, group: object) -> None:
        """Add click commands to the click group ``upright sandbox``."""
