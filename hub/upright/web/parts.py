"""Parts: what the web asks of the rest of the hub, as Protocols; filled in compose.

What a read returns is shown as JSON: frozen dataclasses, mappings, sequences, enum members and
plain values (see :mod:`upright.web.plain`). Times stay epoch milliseconds, UTC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from upright.api import Capabilities, InboundRequest, Secret, Trigger
from upright.engine.ports import Clock
from upright.web.bell import Bell
from upright.web.socket import DeviceSocket


# ------------------------------------------------------------------ what commands may raise
class UnknownIdError(Exception):
    """Nothing has this id."""

    code = "id.unknown"


class RefusedError(Exception):
    """This is not allowed now; the sentence says why, and what would be."""

    code = "refused"


class BusyError(Exception):
    """Too much waits already: nothing was stored, send it again later."""

    code = "busy"

    def __init__(self, reason: str, *, retry_after_s: float = 5.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class NotServingError(Exception):
    """The store can't be written now; nothing was stored, send it again later."""

    code = "unavailable"


# ------------------------------------------------------------------ the parts
class Accepted(Protocol):
    """A trigger after its commit: its id, or the id of the one that it repeats."""

    @property
    def id(self) -> str:
        """The id that is stored."""
        ...

    @property
    def duplicate(self) -> bool:
        """Whether it was stored before."""
        ...


Accept = Callable[[str, Sequence[Trigger]], Awaitable[Sequence[Accepted]]]
"""``accept(source, triggers)`` returns after the commit, one result a trigger, in their order.

Raises BusyError (backlog) or NotServingError (store); nothing is stored then.
"""


class Hooks(Protocol):
    """The connectors, as far as webhooks need them; ``plugin.registry.Connectors`` is one."""

    def capabilities(self, source: str) -> Capabilities | None:
        """Return what a source can do; None when no source has this name."""
        ...

    async def receive(self, source: str, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse; TriggerRejectedError or ConnectorNotReadyError."""
        ...


class Reads(Protocol):
    """The store's views. An id is whole here; None means that nothing has it."""

    async def resolve(self, prefix: str) -> Sequence[str]:
        """Return the ids that begin with *prefix*, a few at most."""
        ...

    async def inbox(self, *, limit: int, before: str | None) -> object:
        """List triggers, newest first, older than the id *before*."""
        ...

    async def trigger(self, trigger: str) -> object | None:
        """Show one trigger whole."""
        ...

    async def why(self, trigger: str) -> object | None:
        """Show a trigger's path through the stops, with times and cost."""
        ...

    async def work_list(self) -> object:
        """List work items."""
        ...

    async def work(self, work: str) -> object | None:
        """Show a work item with its waits and jobs."""
        ...

    async def session(self, session: str) -> object | None:
        """Show a session."""
        ...

    async def entries(self, session: str, *, after: int, limit: int) -> object:
        """List a transcript's entries behind number *after*."""
        ...

    async def requests(self, *, pending: bool) -> object:
        """List what persons are asked for."""
        ...

    async def request(self, request: str) -> object | None:
        """Show one request."""
        ...

    async def devices(self) -> object:
        """List paired devices."""
        ...

    async def sources(self) -> object:
        """List sources and their states."""
        ...

    async def costs(self) -> object:
        """Add up the ledger."""
        ...

    async def events_since(self, seq: int, *, limit: int) -> Sequence[Numbered]:
        """Return events behind number *seq*, oldest first."""
        ...

    async def last_seq(self) -> int:
        """Return the newest event's number, 0 when there is none."""
        ...


class Numbered(Protocol):
    """An event: whatever else it shows, it has its number."""

    @property
    def seq(self) -> int:
        """Its number in the stream, never used twice."""
        ...


class Commands(Protocol):
    """What a signed-in person may do. Each returns after its commit.

    Raises UnknownIdError, RefusedError, or a CoreError (shown as a conflict).
    """

    async def say(self, session: str, text: str) -> object:
        """Tell a session something, as the operator."""
        ...

    async def answer(self, request: str, text: str) -> object:
        """Answer a question."""
        ...

    async def decide(self, request: str, *, approve: bool) -> object:
        """Approve or deny exactly what was asked."""
        ...

    async def pairings(self) -> object:
        """List devices that ask to be paired."""
        ...

    async def pair(self, code: str) -> object:
        """Approve the device whose code this is."""
        ...

    async def revoke(self, device: str) -> object:
        """Take a device's right away and cut its link."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """Bounds of the web server; each interval scales down in tests."""

    body_timeout_s: float = 30.0
    events_poll_s: float = 5.0  # a stream looks at least this often, rung or not
    events_batch: int = 200
    max_json_bytes: int = 256 * 1024
    device_frame_bytes: int = 70 * 1024  # 64 KiB of payload, its header and its MAC
    max_device_sockets: int = 256
    max_device_sockets_per_address: int = 32


async def _no_gauges() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the web application is made of.

    ``device`` serves one device's socket until it ends. ``status`` is shown at ``/v1/status``.
    ``unready`` names what isn't ready, with a sentence each; empty means ready. ``gauges`` are
    Prometheus samples: ``upright_name`` or ``upright_name{label="value"}`` to a number. ``bell``
    is rung after commits. ``hosts`` are further names that a Host header may hold.
    """

    clock: Clock
    token: Secret
    accept: Accept
    hooks: Hooks
    reads: Reads
    commands: Commands
    device: Callable[[DeviceSocket], Awaitable[None]]
    status: Callable[[], Awaitable[Mapping[str, object]]]
    unready: Callable[[], Mapping[str, str]]
    bell: Bell
    gauges: Callable[[], Awaitable[Mapping[str, float]]] = _no_gauges
    hosts: frozenset[str] = frozenset()
    limits: WebLimits = field(default_factory=WebLimits)
