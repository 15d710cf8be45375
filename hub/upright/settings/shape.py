"""Shape: every key of ``upright.toml``, its type and its default. Units stand in the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from upright.api import ActorKind, Destination, EffectClass, SecretRef
from upright.core.bounds import AgentBounds
from upright.core.gate import Mode, Rule
from upright.core.retention import Keep
from upright.core.routing import PassThrough
from upright.core.terms import Terms
from upright.core.trigger import People, Person
from upright.core.wait import WaitKind
from upright.settings.agents import AgentSection
from upright.settings.auth import AuthSection
from upright.settings.model import ModelSection
from upright.settings.spending import BudgetsSection, PriceSection

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
KNOWN_KINDS: Final = frozenset({ActorKind.OPERATOR, ActorKind.MEMBER, ActorKind.CONTACT})


class LogFormat(StrEnum):
    """How a log line looks; ``auto`` is for people on a terminal, JSON lines elsewhere."""

    AUTO = "auto"
    JSON = "json"
    HUMAN = "human"


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSection:
    """``[hub]``: where the hub listens, and where it keeps what is its own.

    ``port`` 0 takes a free one. ``public_url`` is how providers and devices reach it from outside.
    ``state_dir`` is below the home when it isn't absolute.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    state_dir: Path = Path()
    name: str = "upright"

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            problem = "port must be between 0 and 65535"
            raise ValueError(problem)
        address = urlsplit(self.public_url)
        if self.public_url and (address.scheme not in {"http", "https"} or not address.hostname):
            problem = "public_url must be an address such as https://hub.example.org"
            raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSection:
    """``[database]``: SQLite's file at ``path``, or PostgreSQL at ``url``.

    ``path`` is below the state folder when it isn't absolute. The url has no password in it.
    """

    path: Path = Path("upright.db")
    url: str = ""
    password: SecretRef | None = None

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if self.url and (address.scheme != "postgresql" or not address.path.strip("/")):
            # what stands there may hold a password: it is not repeated
            problem = "url must be an address such as postgresql://user@host/name"
            raise ValueError(problem)
        if address.password is not None:
            problem = "url must not hold a password: name it by a reference in `password`"
            raise ValueError(problem)
        if self.password is not None and not self.url:
            problem = "password is for a database with a url"
            raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsSection:
    """``[logs]``."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSection:
    """``[routing]``: ``pass_through`` says what followers get without the router (B6.9).

    ``all``: what comes on a followed thread wakes its followers and never the router. ``people``:
    what bots and CI say goes to the router as well. ``none``: the router forwards everything.
    """

    pass_through: PassThrough = PassThrough.ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSection:
    """``[sources.NAME]``: ``keys`` belong to the kind and are read when its plugin is loaded.

    One that is not ``enabled`` stays listed, and nothing of it is loaded.
    """

    connector: str
    enabled: bool = True
    mode: Mode = Mode.CANDIDATES
    keys: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSection:
    """``[people.NAME]``: ``ids`` are ``source:id``, or ``*:id`` for every source.

    ``notify`` is ``source:room``: where an operator is told what waits for them (B14.4).
    """

    kind: ActorKind
    ids: tuple[str, ...]
    notify: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KNOWN_KINDS:
            problem = "kind must be operator, member or contact"
            raise ValueError(problem)
        for key in self.ids:
            source, colon, name = key.partition(":")
            if not (source and colon and name):
                problem = f'ids are "source:id" or "*:id", not {key!r}'
                raise ValueError(problem)
        if self.notify and not all(self.notify.partition(":")):
            problem = f'notify is "source:room", as "slack:C0123456789", not {self.notify!r}'
            raise ValueError(problem)
        if self.notify and self.kind is not ActorKind.OPERATOR:
            problem = "notify is for operators: nobody else answers what waits"
            raise ValueError(problem)

    def place(self) -> Destination:
        """Return where they are notified, of those who are."""
        source, _, room = self.notify.partition(":")
        return Destination(source=source, kind="room", address=(("room", room),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSection:
    """``[retention]``: how long each kind of thing is kept, in days; 0: for ever.

    Ids stay: what was pruned says when. What unfinished work needs is kept, whatever its age.
    """

    raw_days: int = 30  # payloads, as they came
    transcript_days: int = 90  # of sessions that have ended
    output_days: int = 30  # of jobs that have ended
    output_bytes: int = 2_147_483_648  # all output there is; the oldest goes first
    events_days: int = 180
    snapshots_days: int = 7  # of what a long read began with
    receipts_days: int = 400  # the texts of effects; their receipts stay
    ledger_days: int = 400
    dedupe_days: int = 0  # what refuses a second delivery
    audit_days: int = 400  # who did what

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 0:
                problem = f"{name} must be 0, for ever, or above"
                raise ValueError(problem)
        if 0 < self.dedupe_days < max(self.raw_days, 7):
            problem = "dedupe_days must not be below raw_days, nor below 7: what came comes again"
            raise ValueError(problem)

    def keep(self) -> Keep:
        """Return what the pruner goes by."""
        return Keep(
            raw=self.raw_days,
            transcript=self.transcript_days,
            output=self.output_days,
            output_bytes=self.output_bytes,
            events=self.events_days,
            snapshots=self.snapshots_days,
            receipts=self.receipts_days,
            ledger=self.ledger_days,
            dedupe=self.dedupe_days,
            audit=self.audit_days,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``[limits]``: bounds and intervals; tests scale them down."""

    # turns and sessions
    inline_wait_s: float = 5.0  # how long `run` holds a turn before it says still_running
    lease_s: float = 10.0
    sweep_s: float = 1.0  # how often everything looks at the tables without a hint
    steps_per_turn: int = 50
    router_context_tokens: int = 32_000  # a longer prompt is compacted before the next turn
    worker_context_tokens: int = 96_000
    concurrent_turns: int = 8
    drain_s: float = 10.0
    # outbox
    outbox_base_s: float = 1.0
    outbox_cap_s: float = 300.0
    outbox_tries: int = 8
    # sources
    connector_start_s: float = 30.0
    connector_stop_s: float = 5.0
    connector_base_s: float = 1.0
    connector_cap_s: float = 300.0
    connector_breaks: int = 5
    connector_rest_s: float = 900.0
    hook_body_s: float = 30.0
    fold_quiet_s: float = 2.0  # what follows a trigger within this folds into the next wake
    fold_max_s: float = 30.0  # however steadily it comes
    reconcile_s: float = 300.0  # how often a source that can list is read for what was missed
    backlog_triggers: int = 20_000  # so many wait unread, and webhooks are told to come later
    # devices
    handshake_s: float = 10.0
    ping_s: float = 15.0
    dead_s: float = 40.0
    device_commands: int = 16  # at once on one device; others wait in the hub
    # streams
    events_poll_s: float = 5.0
    # what may sleep for ever is looked for
    oracle_s: float = 30.0
    # homes of agents
    home_sync_s: float = 30.0  # how often their folders are looked at
    # growth
    prune_s: float = 600.0  # how often everything that has an age is looked at
    spill_bytes: int = 262_144  # a larger payload is a file of its own (SQLite)
    disk_free_bytes: int = 268_435_456  # with less room nothing new is taken in

    def __post_init__(self) -> None:
        _above_0(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinesSection:
    """``[deadlines]``: how long each kind of wait may last before something else happens (B11.3).

    Then: a job is looked at; of what is outside or a system fact a person is asked; a person is
    reminded, and the item is blocked.
    """

    job_s: int = 2 * 3600
    external_s: int = 3 * 24 * 3600
    operator_s: int = 7 * 24 * 3600
    system_s: int = 24 * 3600

    def __post_init__(self) -> None:
        _above_0(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivesSection:
    """``[lives]``: how long an effect that could not be sent is still worth sending (B15.3).

    After an outage what is older is listed as expired, and doesn't go out.
    """

    reply_s: int = 24 * 3600
    reach_s: int = 24 * 3600

    def __post_init__(self) -> None:
        _above_0(self)


def _above_0(section: DeadlinesSection | LivesSection | Limits) -> None:
    for name in section.__slots__:
        if getattr(section, name) <= 0:
            problem = f"{name} must be above 0"
            raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration, and where each value came from.

    ``home`` holds the file and everything that is named relatively. ``origins`` maps a dotted key
    to ``flag``, ``environment NAME`` or the file; what isn't in it is a default.
    """

    home: Path
    file: Path
    hub: HubSection = field(default_factory=HubSection)
    database: DatabaseSection = field(default_factory=DatabaseSection)
    model: ModelSection = field(default_factory=ModelSection)
    logs: LogsSection = field(default_factory=LogsSection)
    routing: RoutingSection = field(default_factory=RoutingSection)
    sources: Mapping[str, SourceSection] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    people: Mapping[str, PersonSection] = field(default_factory=dict)
    agents: Mapping[str, AgentSection] = field(default_factory=dict)
    bots: frozenset[str] = frozenset()
    trusted_bots: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
    deadlines: DeadlinesSection = field(default_factory=DeadlinesSection)
    lives: LivesSection = field(default_factory=LivesSection)
    retention: RetentionSection = field(default_factory=RetentionSection)
    auth: AuthSection = field(default_factory=AuthSection)
    budgets: BudgetsSection = field(default_factory=BudgetsSection)
    prices: Mapping[str, PriceSection] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def state_dir(self) -> Path:
        """Where the hub keeps its files."""
        return self.home / self.hub.state_dir

    @property
    def database_path(self) -> Path:
        """The database's file."""
        return self.state_dir / self.database.path

    def modes(self) -> tuple[tuple[str, Mode], ...]:
        """Return each source's mode, by name."""
        return tuple(sorted((name, source.mode) for name, source in self.sources.items()))

    def identities(self) -> People:
        """Return the identity map."""
        persons = tuple(
            Person(name=name, kind=person.kind, ids=frozenset(person.ids))
            for name, person in self.people.items()
        )
        return People.of(persons, self.bots, self.trusted_bots)

    def terms(self) -> Terms:
        """Return the deadlines and lives as units of work use them."""
        deadlines, lives = self.deadlines, self.lives
        return Terms(
            deadlines_s={
                WaitKind.JOB: deadlines.job_s,
                WaitKind.EXTERNAL: deadlines.external_s,
                WaitKind.OPERATOR: deadlines.operator_s,
                WaitKind.SYSTEM: deadlines.system_s,
                WaitKind.TIMER: 0,
            },
            lives_s={EffectClass.REPLY: lives.reply_s, EffectClass.REACH: lives.reach_s},
            operators=frozenset(
                name for name, one in self.people.items() if one.kind is ActorKind.OPERATOR
            ),
            notify={name: one.place() for name, one in self.people.items() if one.notify},
            caps=self.budgets.caps(),
            bounds=AgentBounds(of={name: one.bounds() for name, one in self.agents.items()}),
        )
