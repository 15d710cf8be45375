"""Parts: what the web asks of the rest of the hub, as Protocols; filled in compose.

What a command returns is shown as JSON: mappings, sequences, frozen dataclasses, enum members and
plain values (see :mod:`upright.web.plain`). Times are epoch milliseconds, UTC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from upright.api import Capabilities, Health, InboundRequest, Secret, Trigger
from upright.core.budget import Key, Measure
from upright.engine.ports import Clock, Talk, untold
from upright.store.storage import Storage
from upright.web.bell import Bell
from upright.web.doors import Doors
from upright.web.socket import DeviceSocket, Gone


# ------------------------------------------------------------------ what commands may raise
class RefusedError(Exception):
    """This is not allowed now; the sentence says why, and what would be."""

    code = "refused"


class BusyError(Exception):
    """Too much waits already: nothing was stored, send it again later."""

    code = "busy"

    def __init__(self, reason: str, *, retry_after_s: float = 5.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


# ------------------------------------------------------------------ the parts
class Accepted(Protocol):
    """A trigger after its commit; ``store.intake.Accepted`` is one."""

    @property
    def id(self) -> str:
        """The id that is stored; of a duplicate the first one's."""
        ...

    @property
    def duplicate(self) -> bool:
        """Whether it was stored before."""
        ...


Accept = Callable[[str, Sequence[Trigger]], Awaitable[Sequence[Accepted]]]
"""``accept(source, triggers)`` returns after the commit, one result a trigger, in their order.

Raises BusyError (backlog) or StoreUnavailableError; nothing is stored then.
"""


class Hooks(Protocol):
    """The connectors, as far as webhooks need them; ``plugin.connectors.Connectors`` is one."""

    def capabilities(self, source: str) -> Capabilities | None:
        """Return what a source can do; None when no source has this name."""
        ...

    def health(self, source: str) -> Health:
        """Say when the service last gave a sign of life, and what may have been missed."""
        ...

    def dead(self, source: str) -> object:
        """Count the requests that broke a connector (``plugin.life.DeadLetters``)."""
        ...

    async def receive(self, source: str, request: InboundRequest) -> Sequence[Trigger]:
        """Verify and parse; TriggerRejectedError or ConnectorNotReadyError."""
        ...


class Commands(Protocol):
    """What a signed-in person may do. Each returns after its commit.

    Raises UnknownIdError, RefusedError, a CoreError (shown as a conflict), or an error that
    ``Parts.statuses`` knows.
    """

    async def say(self, session: str, text: str, kind: str) -> object:
        """Tell a session something, as the operator; *kind* says how it is meant (B9)."""
        ...

    async def answer(self, request: str, text: str) -> object:
        """Answer a question."""
        ...

    async def decide(self, request: str, *, approve: bool, digest: str = "") -> object:
        """Approve or deny exactly what was asked, and seen under this digest."""
        ...

    async def edit(self, request: str, text: str, digest: str) -> object:
        """Approve an effect, seen under this digest, with another text."""
        ...

    async def ask_again(self, request: str) -> object:
        """Ask once more for what nobody approved in time."""
        ...

    async def pairings(self) -> object:
        """List the devices that ask to be paired."""
        ...

    async def pairing(self, code: str) -> object:
        """Show the device whose code this is; a wrong code counts as a guess (E1.3)."""
        ...

    async def pair(self, code: str, *, bound_hash: str) -> object:
        """Approve that device, if it is still the one that was shown under this hash."""
        ...

    async def revoke(self, device: str) -> object:
        """Take a device's right away and cut its link."""
        ...

    async def test(self, source: str) -> object:
        """Look live whether a source could work (``api.Probe``)."""
        ...

    async def retry(self, source: str) -> object:
        """Try a source again now (``plugin.connectors.Connectors.retry``)."""
        ...


class Keeper(Protocol):
    """Stored things as a whole; ``compose.keeper.Keeper`` is one."""

    def backup(self) -> AbstractAsyncContextManager[Path]:
        """Make a backup; the file is gone after the block. DiskFullError without room for it."""
        ...

    async def raw(self, payload: str) -> tuple[str, bytes, str]:
        """Return a payload's media type, its bytes, and when it was pruned, if it was."""
        ...

    async def replay(self, *, trigger: str, since_ms: int, limit: int) -> object:
        """Judge stored triggers by today's rules; nothing is changed."""
        ...

    async def again(self, trigger: str) -> object:
        """Offer a held trigger to the router; NotNowError when it is not held."""
        ...


class Oversight(Protocol):
    """What an operator does to work that is stuck. Raises as ``Commands`` does."""

    async def cancel_work(self, work: str) -> object:
        """Cancel a work item and its children."""
        ...

    async def unblock(self, work: str) -> object:
        """Let a blocked item go on."""
        ...

    async def stop(self, session: str) -> object:
        """Stop a session for good."""
        ...

    async def wake(self, wait: str) -> object:
        """End a wait as if what it is for had come."""
        ...

    async def cancel_wait(self, wait: str) -> object:
        """Take a wait away; its worker decides anew."""
        ...

    async def retry_effect(self, effect: str, *, yes: bool) -> object:
        """Send an effect again; one that may be visible only with *yes* (B15.2)."""
        ...

    async def discard_effect(self, effect: str) -> object:
        """Drop an effect that is held or pending."""
        ...

    def stalled(self) -> Sequence[Mapping[str, object]]:
        """List what the oracle knows to be stalled."""
        ...


class Desk(Protocol):
    """What people change of routing; ``compose.desk.Desk`` is one. Changes return after a commit.

    Raises UnknownIdError, NotNowError, and SettingsError for rules that can't be read.
    """

    async def rules(self, number: int | None) -> object:
        """Show a version of the rules, the one that holds when *number* is None."""
        ...

    async def rules_history(self, limit: int) -> object:
        """List versions, the newest first."""
        ...

    async def edit_rules(self, text: str, base: int) -> object:
        """Store a version that was made from number *base*."""
        ...

    async def people(self) -> object:
        """List people with their ids."""
        ...

    async def add_person(self, name: str, kind: str) -> object:
        """Add a person."""
        ...

    async def link_person(self, name: str, key: str) -> object:
        """Say that an id is a person's."""
        ...

    async def follows(self) -> object:
        """List who follows which thread."""
        ...

    async def follow(self, session: str, thread: str) -> object:
        """Let a worker follow a thread."""
        ...

    async def unfollow(self, session: str, thread: str) -> object:
        """Let a worker follow a thread no more."""
        ...


class Machines(Protocol):
    """What a person does with devices (E10). Raises as ``Commands`` does."""

    async def share(self, device: str, person: str) -> object:
        """Let a device run a person's items; ``*``: everybody's."""
        ...

    async def unshare(self, device: str, person: str) -> object:
        """Run none of a person's items any more."""
        ...

    async def rename(self, device: str, name: str) -> object:
        """Call a device something else."""
        ...

    async def move(self, item: str, device: str) -> object:
        """Let an item go on at another device."""
        ...


class Purse(Protocol):
    """Budgets and the model's endpoints; ``compose.purse.Purse`` is one. Raises RefusedError."""

    async def budgets(self) -> object:
        """List what is used of each cap."""
        ...

    async def near(self) -> Sequence[Mapping[str, object]]:
        """List, of those, what people were warned of and what is used up."""
        ...

    async def put(self, key: Key, measure: Measure, amount: int, by: str) -> object:
        """Set a cap; the name ``*``: each of its scope."""
        ...

    async def clear(self, key: Key, by: str) -> object:
        """Let the configuration's caps hold again."""
        ...

    async def endpoints(self) -> object:
        """List endpoints, with what they can do."""
        ...

    async def retry(self, by: str) -> object:
        """Close every breaker."""
        ...

    async def probe(self, role: str) -> object:
        """Find out what a role's endpoint can do."""
        ...


class Agents(Protocol):
    """Agents and their homes (B17); ``compose.agents.HubAgents`` is one. Raises as ``Desk``."""

    async def listed(self) -> object:
        """List agents by name."""
        ...

    async def show(self, name: str) -> object:
        """Show an agent with its home and what it works on."""
        ...

    async def add(self, name: str, template: str) -> object:
        """Make an agent from a template."""
        ...

    async def sync(self) -> object:
        """Bring the homes' folders and the store together."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebLimits:
    """Bounds of the web server; each interval scales down in tests."""

    body_timeout_s: float = 30.0
    events_poll_s: float = 5.0  # a stream looks at least this often, rung or not
    events_batch: int = 200
    events_lag_s: float = 30.0  # a reader that takes nothing for so long is cut off
    max_streams: int = 64  # of one reader
    max_json_bytes: int = 256 * 1024
    device_frame_bytes: int = 70 * 1024  # 64 KiB of payload, its header and its MAC
    max_device_sockets: int = 20_000
    max_half_open: int = 512  # sockets whose far end has not proved who it is (E2.1)
    max_half_open_per_address: int = 32


async def _no_gauges() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the web application is made of.

    ``device`` serves one device's socket until it ends; ``gone`` makes the error that the socket
    raises when it ended (``devices.transport.GoneError``). ``online`` are the ids of devices with
    a live link. ``status`` is shown at ``/v1/status``. ``unready`` names what isn't ready, with a
    sentence each; empty means ready. ``gauges`` are Prometheus samples: ``upright_name`` or
    ``upright_name{label="value"}`` to a number. ``bell`` is rung after commits. ``hosts`` are
    further names that a Host header may hold. ``statuses`` are HTTP statuses of further errors.
    ``doors`` is what signing in needs. ``talk`` asks a service what was said around a trigger.
    """

    clock: Clock
    token: Secret
    store: Storage
    accept: Accept
    hooks: Hooks
    commands: Commands
    keeper: Keeper
    oversight: Oversight
    desk: Desk
    machines: Machines
    doors: Doors
    purse: Purse
    agents: Agents
    device: Callable[[DeviceSocket], Awaitable[None]]
    gone: Gone
    online: Callable[[], frozenset[str]]
    status: Callable[[], Awaitable[Mapping[str, object]]]
    unready: Callable[[], Mapping[str, str]]
    bell: Bell
    talk: Talk = untold
    gauges: Callable[[], Awaitable[Mapping[str, float]]] = _no_gauges
    hosts: frozenset[str] = frozenset()
    statuses: Mapping[type[Exception], int] = field(default_factory=dict)
    limits: WebLimits = field(default_factory=WebLimits)
