"""Tables: every row that Upright keeps. Times are epoch milliseconds, UTC; ``*_json`` is JSON text.

The rows are the truth and the queue: a session with ``ready_at_ms`` is what the engine claims, an
outbox row that is due is what gets sent, a job row in ``queued`` is what a device is sent.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, UniqueConstraint
from sqlmodel import AutoString, Field, SQLModel

from upright.store.columns import SERIAL, TEXT, OwnXact


def _serial() -> Column[int]:
    return Column(SERIAL, primary_key=True, autoincrement=True)


def _big(*, null: bool = True, index: bool = False) -> Column[int]:
    return Column(BigInteger, nullable=null, index=index)


class Meta(SQLModel, table=True):
    """Facts about this hub: its id, and what must not change under it."""

    key: str = Field(primary_key=True)
    value: str


# ------------------------------------------------------------------ intake
class Thread(SQLModel, table=True):
    """The stream of triggers about one thing."""

    id: str = Field(primary_key=True)
    source: str
    title: str = ""
    created_at_ms: int = Field(sa_column=_big(null=False))


class ThreadKey(SQLModel, table=True):
    """A key that belongs to a thread (B6.10)."""

    __tablename__ = "thread_key"
    key: str = Field(primary_key=True)
    thread_id: str = Field(index=True)


class ThreadLink(SQLModel, table=True):
    """Two threads whose subscribers share what comes; stored both ways round."""

    __tablename__ = "thread_link"
    thread_id: str = Field(primary_key=True)
    other_id: str = Field(primary_key=True)


class Payload(SQLModel, table=True):
    """The raw bytes of a trigger."""

    id: str = Field(primary_key=True)
    media_type: str
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    created_at_ms: int = Field(sa_column=_big(null=False))


class TriggerRow(SQLModel, table=True):
    """One immutable event, with the gate's verdict and its one disposition."""

    __tablename__ = "trigger"
    seq: int | None = Field(default=None, sa_column=_serial())
    id: str = Field(unique=True)
    source: str
    kind: str
    thread_id: str = Field(index=True)
    actor_kind: str
    actor_id: str
    trust: int
    body_json: str
    payload_id: str
    occurred_at_ms: int | None = Field(default=None, sa_column=_big())
    received_at_ms: int = Field(sa_column=_big(null=False))
    verdict: str
    rule: str
    rules_version: str
    disposition: str
    reason: str


class Dedupe(SQLModel, table=True):
    """A key that was seen; it outlives the payload (B2.2)."""

    source: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    trigger_id: str


class Cursor(SQLModel, table=True):
    """How far a source was read."""

    source: str = Field(primary_key=True)
    value: str


class Source(SQLModel, table=True):
    """The state of a configured source, and when it was last heard."""

    name: str = Field(primary_key=True)
    kind: str
    state: str
    reason: str = ""
    changed_at_ms: int = Field(sa_column=_big(null=False))
    heard_at_ms: int | None = Field(default=None, sa_column=_big())


# ------------------------------------------------------------------ sessions
class Session(SQLModel, table=True):
    """A transcript's owner, and its place in the queue.

    ``ready_at_ms``: when it may run next, or NULL. ``lease_epoch``: one higher with each claim.
    """

    id: str = Field(primary_key=True)
    kind: str
    agent: str
    work_id: str | None = Field(default=None, index=True)
    generation: int = 0
    taint: int
    ready_at_ms: int | None = Field(default=None, sa_column=_big())
    lease_epoch: int = 0
    lease_until_ms: int | None = Field(default=None, sa_column=_big())
    failures: int = 0
    nudges: int = 0
    steps: int = 0
    ended_at_ms: int | None = Field(default=None, sa_column=_big())
    created_at_ms: int = Field(sa_column=_big(null=False))
    __table_args__ = (Index("ix_session_ready", "ready_at_ms", "lease_until_ms"),)


class Subscription(SQLModel, table=True):
    """A session follows a thread."""

    session_id: str = Field(primary_key=True)
    thread_id: str = Field(primary_key=True, index=True)
    created_at_ms: int = Field(sa_column=_big(null=False))


class Delivery(SQLModel, table=True):
    """One trigger in one session's inbox; ``taken_n`` is the entry that took it."""

    id: int | None = Field(default=None, sa_column=_serial())
    session_id: str
    trigger_id: str = Field(index=True)
    wake: bool
    taken_n: int | None = None
    __table_args__ = (
        UniqueConstraint("session_id", "trigger_id"),
        Index("ix_delivery_inbox", "session_id", "taken_n"),
    )


class Entry(SQLModel, table=True):
    """One message of a transcript, final when it is written."""

    session_id: str = Field(primary_key=True)
    n: int = Field(primary_key=True)
    generation: int
    turn_id: str
    message_json: str
    digest: str = ""  # of a tool's result, ids and times left out
    ends_turn: bool = False  # the tool says that the model has nothing to add
    at_ms: int = Field(sa_column=_big(null=False))


class Turn(SQLModel, table=True):
    """One activation of a session."""

    id: str = Field(primary_key=True)
    session_id: str = Field(index=True)
    epoch: int
    started_at_ms: int = Field(sa_column=_big(null=False))
    ended_at_ms: int | None = Field(default=None, sa_column=_big())
    ending: str = ""
    steps: int = 0


# ------------------------------------------------------------------ work
class Work(SQLModel, table=True):
    """A work item; one a trigger, one a worker session."""

    id: str = Field(primary_key=True)
    session_id: str = Field(unique=True)
    trigger_id: str = Field(unique=True)
    thread_id: str = Field(index=True)
    goal: str
    criteria_json: str
    mandate_json: str
    state: str = Field(index=True)
    revision: int = 0
    generation: int = 0
    plan_json: str = "[]"
    evidence_json: str = "[]"
    destination_json: str = "null"
    code_json: str = "null"
    reason: str = ""
    created_at_ms: int = Field(sa_column=_big(null=False))
    changed_at_ms: int = Field(sa_column=_big(null=False))


class WaitRow(SQLModel, table=True):
    """A wait of a work item."""

    __tablename__ = "wait"
    id: str = Field(primary_key=True)
    work_id: str = Field(index=True)
    generation: int
    kind: str
    ref: str
    why: str
    look_first: str
    created_at_ms: int = Field(sa_column=_big(null=False))
    deadline_ms: int = Field(sa_column=_big(null=False))
    on_deadline: str
    state: str
    __table_args__ = (
        Index("ix_wait_due", "state", "deadline_ms"),
        Index("ix_wait_source", "state", "kind", "ref"),
    )


class Job(SQLModel, table=True):
    """A command on a device."""

    id: str = Field(primary_key=True)
    session_id: str = Field(index=True)
    work_id: str = Field(index=True)
    call_id: str
    turn_id: str
    device_id: str
    state: str
    spec_json: str
    digest: str
    stdin: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    background: bool = False
    epoch: int
    outcome: str = ""
    code: int | None = Field(default=None, sa_column=_big())  # of Windows: unsigned, 32 bits
    started: str = "no"
    detail_json: str = "{}"
    sent: bool = False
    settled: bool = False  # its device was told that the final is stored
    reported: bool = False  # the tool message holds the end, so no trigger is needed for it
    stdout_bytes: int = Field(default=0, sa_column=_big(null=False))
    stderr_bytes: int = Field(default=0, sa_column=_big(null=False))
    created_at_ms: int = Field(sa_column=_big(null=False))
    started_at_ms: int | None = Field(default=None, sa_column=_big())
    ended_at_ms: int | None = Field(default=None, sa_column=_big())
    __table_args__ = (
        UniqueConstraint("session_id", "call_id"),
        Index("ix_job_device", "device_id", "settled"),
    )


class Output(SQLModel, table=True):
    """A piece of a command's output, at its byte offset."""

    job_id: str = Field(primary_key=True)
    stream: str = Field(primary_key=True)
    offset: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


# ------------------------------------------------------------------ outward, people, devices
class Outbox(SQLModel, table=True):
    """One outward effect."""

    id: str = Field(primary_key=True)
    session_id: str
    work_id: str | None = Field(default=None, index=True)
    trigger_id: str | None = Field(default=None, index=True)
    effect_class: str
    source: str
    destination_json: str
    text: str
    idempotency_key: str = Field(unique=True)
    digest: str
    state: str
    tries: int = 0
    may_be_visible: bool = False  # a sender died while sending it
    due_at_ms: int = Field(sa_column=_big(null=False))
    expires_at_ms: int | None = Field(default=None, sa_column=_big())
    reason: str = ""
    receipt_id: str = Field(default="", index=True)
    receipt_url: str = ""
    created_at_ms: int = Field(sa_column=_big(null=False))
    settled_at_ms: int | None = Field(default=None, sa_column=_big())
    __table_args__ = (Index("ix_outbox_due", "state", "due_at_ms"),)


class Request(SQLModel, table=True):
    """A pairing, an approval or a question: something only a person can answer."""

    id: str = Field(primary_key=True)
    kind: str
    state: str
    work_id: str | None = Field(default=None, index=True)
    session_id: str | None = None
    outbox_id: str | None = None
    prompt: str
    subject_json: str = "{}"
    digest: str = ""
    answer: str = ""
    answered_by: str = ""
    created_at_ms: int = Field(sa_column=_big(null=False))
    expires_at_ms: int = Field(sa_column=_big(null=False))
    __table_args__ = (Index("ix_request_due", "state", "expires_at_ms"),)


class Device(SQLModel, table=True):
    """A paired machine, pinned by its key."""

    id: str = Field(primary_key=True)
    name: str
    public_key: bytes = Field(sa_column=Column(LargeBinary, nullable=False, unique=True))
    state: str
    caps_json: str
    facts_json: str
    approved_at_ms: int = Field(sa_column=_big(null=False))
    seen_at_ms: int | None = Field(default=None, sa_column=_big())


class Workspace(SQLModel, table=True):
    """A root that a device announced, with the git remotes that bind repositories to it."""

    device_id: str = Field(primary_key=True)
    path: str = Field(primary_key=True)
    remotes_json: str
    label: str = ""


# ------------------------------------------------------------------ what happened
class Ledger(SQLModel, table=True):
    """What one model call, job or delivery cost."""

    seq: int | None = Field(default=None, sa_column=_serial())
    at_ms: int = Field(sa_column=_big(null=False))
    kind: str
    session_id: str = Field(index=True)
    work_id: str | None = Field(default=None, index=True)
    turn_id: str = Field(default="", index=True)
    model: str = ""
    tokens_input: int = 0
    tokens_cached: int = 0
    tokens_output: int = 0
    usd_micros: int | None = Field(default=None, sa_column=_big())
    seconds: float = 0.0


class Event(SQLModel, table=True):
    """One step on a trigger's way, by the name of its stop (A3): what ``upright why`` prints."""

    seq: int | None = Field(default=None, sa_column=_serial())
    xact: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, default=OwnXact()))
    at_ms: int = Field(sa_column=_big(null=False))
    stop: str
    trigger_id: str | None = Field(default=None, index=True)
    session_id: str | None = Field(default=None, index=True)
    work_id: str | None = Field(default=None, index=True)
    turn_id: str | None = Field(default=None, index=True)
    job_id: str | None = Field(default=None, index=True)
    outbox_id: str | None = Field(default=None, index=True)
    data_json: str = "{}"


_TABLES = SQLModel.metadata.tables
for _column in (column for table in _TABLES.values() for column in table.c):
    if isinstance(_column.type, AutoString):
        _column.type = TEXT
META: Table = _TABLES["meta"]
THREAD: Table = _TABLES["thread"]
THREAD_KEY: Table = _TABLES["thread_key"]
THREAD_LINK: Table = _TABLES["thread_link"]
PAYLOAD: Table = _TABLES["payload"]
TRIGGER: Table = _TABLES["trigger"]
DEDUPE: Table = _TABLES["dedupe"]
CURSOR: Table = _TABLES["cursor"]
SOURCE: Table = _TABLES["source"]
SESSION: Table = _TABLES["session"]
SUBSCRIPTION: Table = _TABLES["subscription"]
DELIVERY: Table = _TABLES["delivery"]
ENTRY: Table = _TABLES["entry"]
TURN: Table = _TABLES["turn"]
WORK: Table = _TABLES["work"]
WAIT: Table = _TABLES["wait"]
JOB: Table = _TABLES["job"]
OUTPUT: Table = _TABLES["output"]
OUTBOX: Table = _TABLES["outbox"]
REQUEST: Table = _TABLES["request"]
DEVICE: Table = _TABLES["device"]
WORKSPACE: Table = _TABLES["workspace"]
LEDGER: Table = _TABLES["ledger"]
EVENT: Table = _TABLES["event"]
