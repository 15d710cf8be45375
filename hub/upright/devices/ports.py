"""Ports of the devices shelf: what links and pairing ask of the store and of the dispatcher."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from upright.core.request import RequestState
from upright_wire.command import Outcome, Stream
from upright_wire.frames import Facts, Held, Refused, StateReport, Workspaces
from upright_wire.spec import Spec


# ------------------------------------------------------------------ who may link
class DeviceState(StrEnum):
    """What a paired device may do."""

    ACTIVE = "active"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device as the store knows it; ``caps`` are those that a person granted."""

    id: str
    public_key: bytes
    state: DeviceState
    caps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A device that has just proved who it is; ``wider_caps`` wait for a person's approval."""

    device_id: str
    remote: str
    boot_id: str
    os_boot_id: str
    wider_caps: tuple[str, ...]


class Roster(Protocol):
    """The paired devices."""

    async def device(self, device_id: str) -> KnownDevice | None:
        """Return the device with this id, revoked or not."""
        ...

    async def seen(self, sighting: Sighting) -> None:
        """Note that it linked; capabilities beyond its grant are a question to a person."""
        ...

    async def suspect(self, device_id: str) -> None:
        """Hold back new commands: two machines seem to use its key (E2.3). Repeats are free."""
        ...


# ------------------------------------------------------------------ pairing
@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A device that asks to be paired. ``bound_hash`` is what an approval binds (E1.3)."""

    id: str
    code: str
    digits: str
    bound_hash: str
    device_key: bytes
    host: str
    remote: str
    caps: tuple[str, ...]
    facts: Facts
    expires_at: datetime
    state: RequestState = RequestState.ASKED
    wrong_guesses: int = 0
    device_id: str = ""
    granted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's yes: to this request as it was shown, with these capabilities."""

    request_id: str
    bound_hash: str
    device_id: str
    granted: tuple[str, ...]
    by: str


class PairingStore(Protocol):
    """Pairing requests; each call is one transaction."""

    async def add(self, pairing: Pairing) -> None:
        """Keep a new request; an older one of the same key that is still ASKED is withdrawn."""
        ...

    async def find(self, request_id: str) -> Pairing | None:
        """Return a request in any state."""
        ...

    async def asked(self) -> tuple[Pairing, ...]:
        """Return the requests that wait for a person, expired ones too."""
        ...

    async def approve(self, approval: Approval) -> bool:
        """Answer the request and add the device; False when it is not ASKED or its hash differs."""
        ...

    async def settle(self, request_id: str, state: RequestState, *, by: str = "") -> None:
        """End a request that is ASKED: ANSWERED is a no here; harmless when it is settled."""
        ...

    async def count_wrong_guess(self) -> None:
        """Add a wrong guess to every ASKED request."""
        ...


# ------------------------------------------------------------------ commands over a link
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command to be sent; its id is in the database already, and *digest* is the spec's."""

    command_id: str
    session: str
    lease_epoch: int
    digest: str
    spec: Spec
    ttl_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """A command of the inventory that is this hub's: how much of its output is stored here."""

    command_id: str
    stdout: int = 0
    stderr: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """The answer to an inventory; ids in none of the lists are foreign and left alone (E7)."""

    follow: tuple[Follow, ...] = ()
    cancel: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()


class Inbound(Protocol):
    """Takes what a device sends, one call at a time. Returning means: committed.

    A piece of output that was stored and not acknowledged may come again after a reconnect; the
    plan's offsets say from where, so nothing is ever handed over twice within a link.
    """

    async def on_inventory(self, commands: tuple[Held, ...]) -> SyncPlan:
        """Say what is known of these, and settle what was sent and is not among them."""
        ...

    async def on_synced(self) -> None:
        """Learn that commands, cancels and input may be sent now."""
        ...

    async def on_state(self, report: StateReport) -> None:
        """Store a command's state."""
        ...

    async def on_refused(self, refused: Refused) -> None:
        """Store that an ``exec`` was not taken."""
        ...

    async def on_output(self, command_id: str, stream: Stream, offset: int, data: bytes) -> None:
        """Store a piece of output; it is acknowledged after this returns."""
        ...

    async def on_omitted(self, command_id: str, stream: Stream, offset: int, count: int) -> None:
        """Store that so many bytes from *offset* on were counted and not kept."""
        ...

    async def on_final(self, command_id: str, outcome: Outcome) -> None:
        """Store the end; the device may forget the command after this returns."""
        ...

    async def on_workspaces(self, said: Workspaces) -> None:
        """Replace the device's announced workspaces, and how its files are read and written."""
        ...
