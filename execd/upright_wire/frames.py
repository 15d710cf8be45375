"""Frames: every message of the protocol as a value; the codec alone knows their bytes.

Ids, digests and SHA-256 are text; keys, nonces and signatures are bytes. The first docstring line
of a control message says who sends it and why; its ``TYPE`` is the name on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import ClassVar, Final

from upright_wire.command import Outcome, Refusal, Started, State, Stream
from upright_wire.spec import Spec

SUBPROTOCOL: Final = "upright.execd.1"
PROTO: Final = 1
MAX_TEXT_BYTES: Final = 64 * 1024
MAX_FIRST_BYTES: Final = 16 * 1024
MAX_PAYLOAD_BYTES: Final = 64 * 1024
COMMAND_CREDIT_BYTES: Final = 1024 * 1024
LINK_CREDIT_BYTES: Final = 8 * 1024 * 1024


class Side(StrEnum):
    """The two ends of a link."""

    HUB = "hub"
    DEVICE = "device"


class CloseCode(IntEnum):
    """Why a link is closed (E2.4)."""

    NORMAL = 1000
    RESTART = 1012
    REVOKED = 4001
    NOT_APPROVED = 4003
    PROTOCOL = 4004
    SUPERSEDED = 4008
    SLOW_DOWN = 4029


# ------------------------------------------------------------------ data
class Kind(IntEnum):
    """What the payload of a data frame is; 4 (pty) and 5 (file) are reserved."""

    STDOUT = 1
    STDERR = 2
    STDIN = 3


class Flag(IntFlag):
    """What else a data frame says."""

    NONE = 0
    END = 1  # the stream ends after this payload, which may be empty
    GAP = 2  # the payload is a count (u64): so many bytes from this offset on are not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """A piece of a stream, by its offset in the whole stream; ``channel`` names the command.

    The hub gives a command its channel in ``exec`` or ``sync``; it is good for this link only.
    """

    kind: Kind
    channel: int
    offset: int
    payload: bytes = b""
    flags: Flag = Flag.NONE


# ------------------------------------------------------------------ handshake
@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """Hub: who I am and what your answer must cover; the first frame of every socket."""

    TYPE: ClassVar[str] = "challenge"
    hub_id: str
    hub_key_id: str
    nonce: bytes
    eph: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Device: the answer to the challenge, signed over the transcript."""

    TYPE: ClassVar[str] = "hello"
    device_id: str
    host: str
    nonce: bytes
    eph: bytes
    boot_id: str
    os_boot_id: str
    caps: tuple[str, ...]
    proto: tuple[int, int]
    sig: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this link bears, in bytes and milliseconds."""

    payload_bytes: int = MAX_PAYLOAD_BYTES
    command_credit_bytes: int = COMMAND_CREDIT_BYTES
    link_credit_bytes: int = LINK_CREDIT_BYTES
    ping_ms: int = 15_000
    dead_ms: int = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Hub: you are in, under this link id; from here on every frame is sealed."""

    TYPE: ClassVar[str] = "welcome"
    link: str
    proto: int
    caps: tuple[str, ...]
    limits: Limits = Limits()
    sig: bytes = b""


# ------------------------------------------------------------------ pairing
@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a device says of itself for a person to look at; nothing is decided by it."""

    hostname: str
    system: str
    user: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCommit:
    """Device: the hash of what I shall reveal, before I know your nonce."""

    TYPE: ClassVar[str] = "pair_commit"
    commitment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOffer:
    """Hub: my key and nonce, before I know yours."""

    TYPE: ClassVar[str] = "pair_offer"
    hub_key: bytes
    nonce: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReveal:
    """Device: what was committed to, and a signature over the opened transcript."""

    TYPE: ClassVar[str] = "pair_reveal"
    device_key: bytes
    nonce: bytes
    host: str
    caps: tuple[str, ...]
    facts: Facts
    sig: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResume:
    """Device: I am the one who waits on this request; signed over the challenge."""

    TYPE: ClassVar[str] = "pair_resume"
    request: str
    device_key: bytes
    sig: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPending:
    """Hub: a person must approve; the code finds the request, the digits are compared."""

    TYPE: ClassVar[str] = "pair_pending"
    request: str
    code: str
    expires_ms: int
    sig: bytes = b""


class PairVerdict(StrEnum):
    """What became of a pairing request."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """Hub: the person's decision; ``device_id`` and ``caps`` are empty unless approved."""

    TYPE: ClassVar[str] = "pair_result"
    request: str
    verdict: PairVerdict
    device_id: str = ""
    caps: tuple[str, ...] = ()
    sig: bytes = b""


# ------------------------------------------------------------------ keeping in step
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A command that the device holds: its state, and where each stream ends for now.

    ``stdin`` is the offset from which input is still wanted.
    """

    command_id: str
    digest: str
    state: State
    stdout: int = 0
    stderr: int = 0
    stdin: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Device: the commands whose final you have not acknowledged; ``more`` parts follow."""

    TYPE: ClassVar[str] = "inventory"
    commands: tuple[Held, ...]
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A command that the hub follows: its channel, and the offsets from which it wants output."""

    command_id: str
    channel: int
    stdout: int = 0
    stderr: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Hub: what I have, what is cancelled, what you may forget (its final is safely here)."""

    TYPE: ClassVar[str] = "sync"
    commands: tuple[Wanted, ...]
    cancel: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    more: bool = False


# ------------------------------------------------------------------ commands
@dataclass(frozen=True, slots=True, kw_only=True)
class Exec:
    """Hub: run this. ``ttl_ms``: how long it may wait for its start, counted from its arrival."""

    TYPE: ClassVar[str] = "exec"
    command_id: str
    channel: int
    session: str
    lease_epoch: int
    digest: str
    spec: Spec
    ttl_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelCommand:
    """Hub: end this command, or never start it; as often as you like."""

    TYPE: ClassVar[str] = "cancel"
    command_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Device: that ``exec`` was not taken; what is known under its id is as it was."""

    TYPE: ClassVar[str] = "refused"
    command_id: str
    refusal: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """Device: where a command is now (not its end: that is ``final``)."""

    TYPE: ClassVar[str] = "state"
    command_id: str
    state: State
    started: Started = Started.NO
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Either: everything of this stream before ``offset`` is safely stored here."""

    TYPE: ClassVar[str] = "ack"
    command_id: str
    stream: Stream
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReport:
    """Device: the end of a command, after its last output."""

    TYPE: ClassVar[str] = "final"
    command_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalAck:
    """Hub: the end is safely stored here; the spool may go, the receipt stays."""

    TYPE: ClassVar[str] = "final_ack"
    command_id: str


# ------------------------------------------------------------------ the rest
@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A root in which commands may run: its real path and the git remotes found in it."""

    path: str
    remotes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspaces:
    """Device: all workspaces that are announced; replaces what was said before.

    ``files`` is the argv prefix of the device's program that reads and writes files.
    """

    TYPE: ClassVar[str] = "workspaces"
    workspaces: tuple[Workspace, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Either: are you there?"""

    TYPE: ClassVar[str] = "ping"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """Either: yes, I am."""

    TYPE: ClassVar[str] = "pong"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Either: something you sent was not taken; ``about`` is its command id or type."""

    TYPE: ClassVar[str] = "error"
    code: str
    about: str = ""
    retry_after_ms: int | None = None


Handshake = Challenge | Hello | Welcome
Pairing = PairCommit | PairOffer | PairReveal | PairResume | PairPending | PairResult
Commanding = Exec | CancelCommand | Refused | StateReport | Ack | FinalReport | FinalAck
Message = Handshake | Pairing | Inventory | Sync | Commanding | Workspaces | Ping | Pong | Problem
