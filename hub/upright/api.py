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
from enum import StrEnum
from typing import Any, Final, Protocol

import pluggy

API_VERSION: Final = 1
ENTRY_POINT_GROUP: Final = "upright"

hookimpl: Final = pluggy.HookimplMarker("upright")
hookspec: Final = pluggy.HookspecMarker("upright")


# ------------------------------------------------------------------ the structured event (B1)
class ActorKind(StrEnum):
    """Who acted, as configuration says; the text never decides it (B1.3)."""

    OPERATOR = "operator"
    MEMBER = "member"
    CONTACT = "contact"
    STRANGER = "stranger"
    BOT = "bot"
    SYSTEM = "system"
    SELF = "self"


class Channel(StrEnum):
    """How a trigger came."""

    GITHUB = "github"
    CI = "ci"
    CHAT = "chat"
    MAIL = "mail"
    CALENDAR = "calendar"
    TIMER = "timer"
    WEBHOOK = "webhook"
    FILE = "file"
    DATABASE = "database"
    JOB = "job"
    DEVICE = "device"
    OPERATOR = "operator"
    PHONE = "phone"
    SMS = "sms"
    SOCIAL = "social"


class Address(StrEnum):
    """Whether the text speaks to the agent."""

    DIRECT = "direct"
    MENTION = "mention"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who: the provider's stable id, the name shown, and the kind.

    A connector says STRANGER, BOT or SELF; intake raises a stranger to what it knows of the id.
    """

    id: str
    name: str = ""
    kind: ActorKind = ActorKind.STRANGER


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What: a title, the text, and the addresses of what is attached."""

    title: str = ""
    text: str = ""
    attachments: tuple[str, ...] = ()
    urgent: bool = False
    expects_reply: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where an answer goes: fixed when the effect is made, never guessed later (B15.1).

    ``address`` is the connector's own: ordered pairs of strings.
    """

    source: str
    kind: str
    address: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str:
        """Return one part of the address; KeyError when it is not there."""
        return dict(self.address)[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The code that a trigger speaks of.

    ``repository`` is the provider's full name (``acme/app``), ``urls`` the clone addresses that a
    device's remotes are matched with. ``fork``: the head was pushed to another repository, thus by
    somebody who may not push to this one (B14.6).
    """

    repository: str
    urls: tuple[str, ...] = ()
    sha: str = ""
    branch: str = ""
    number: int | None = None
    fork: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Background of a trigger.

    ``thread`` is the key of the one thing this is about, unique in the source. ``joins`` are
    further keys of it (a pull request's commits and branch): triggers that share one are one thread
    (B6.10). ``related`` are keys of other threads, to be linked. ``reply_to``: where answers go.
    """

    thread: str
    joins: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    reply_to: Destination | None = None
    address: Address = Address.NONE
    links: tuple[str, ...] = ()
    code: Code | None = None
    edit_of: str = ""  # native id of what this trigger edits or deletes (B1.4)
    facts: tuple[tuple[str, str], ...] = ()  # what rules may match and people may read


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One event from a source, before the hub gave it an id.

    ``kind`` is dotted (``ci.failed``, ``pr.opened``, ``comment.created``). ``dedupe`` holds one
    or more keys, unique in the source; a trigger with any key that was seen is refused (B2.2).
    ``occurred_at`` is the provider's time, aware. ``raw`` is kept whole.
    """

    kind: str
    channel: Channel
    actor: Actor
    content: Content
    context: Context
    dedupe: tuple[str, ...]
    occurred_at: datetime | None = None
    raw: bytes = b""
    raw_type: str = "application/json"


# ------------------------------------------------------------------ effects
class EffectClass(StrEnum):
    """How far an effect reaches; the table of B14.2 decides on it."""

    READ = "read"
    WORK = "work"
    REPLY = "reply"
    REACH = "reach"
    SHELL = "shell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One outward effect, ready to perform: ``text`` goes to ``destination`` once.

    The same ``idempotency_key`` must never become visible twice. ``tries`` counts earlier
    attempts: with one or more of them, look before you send.
    """

    id: str
    destination: Destination
    text: str
    idempotency_key: str
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The provider's proof: its id of what became visible, and where to see it."""

    provider_id: str
    url: str = ""
    found: bool = False  # it was there already: an earlier try had worked


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
    """A request to ``/hooks/<source>``: header names in lower case, the body as it came."""

    headers: Mapping[str, str]
    body: bytes
    remote: str = ""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret lives: ``keyring:NAME``, ``env:NAME`` or ``file:PATH``."""

    reference: str


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret that can't print; ``reveal`` it at the last moment."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a live check found: one sentence, and what the credentials may do."""

    ok: bool
    summary: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a connector can do, and its limits."""

    receives: bool = False
    lists: bool = False
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
        """Return the stored cursor."""
        ...


class Connector(Protocol):
    """One configured source, in a supervised task of its own.

    A connector never sets a state: it raises, and one table in core maps what it raised.
    """

    async def validate(self) -> Probe:
        """Sign in and look: credentials, scopes, limits."""
        ...

    async def start(self, context: ConnectorContext) -> None:
        """Make clients; return when ready to receive and send."""
        ...

    async def stop(self, timeout_s: float) -> None:
        """Close everything within the time."""
        ...

    def backfill(self, since: str | None, until: datetime) -> AsyncIterator[Trigger]:
        """Yield what happened since, oldest first: on start, after reconnects, on a schedule.

        *since*: aware, ISO 8601, up to which all is stored; None at the very first. Dedupe keys
        and ``occurred_at`` must be those of the webhook it stands for; overlap does no harm.
        """
        ...

    async def receive(self, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse a webhook; raise TriggerRejectedError to refuse it."""
        ...

    async def send(self, effect: Effect) -> Receipt:
        """Perform an effect once; raise a Retryable-, Permanent- or UnknownSendError."""
        ...

    def capabilities(self) -> Capabilities:
        """Say what this connector can do."""
        ...


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
