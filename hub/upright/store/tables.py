"""Tables: every row that Upright keeps. Times are epoch milliseconds, UTC; ``*_json`` is JSON text.

The rows are the truth and the queue: a session with ``ready_at_ms`` is what the engine claims, an
outbox row that is due is what gets sent, a job row in ``queued`` is what a device is sent.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, UniqueConstraint
from sqlmodel import AutoString, Field, SQLModel

from upright.store import (
    tables_agents,
    tables_authority,
    tables_model,
    tables_people,
    tables_recall,
    tables_world,
)
from upright.store.columns import TEXT, big, flag, live_index, serial


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
    created_at_ms: int = Field(sa_column=big(null=False))


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
    """The raw bytes of a trigger: here, or in the file that ``spilled`` names."""

    id: str = Field(primary_key=True)
    media_type: str
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    size: int = 0
    spilled: str = ""  # SHA-256 of the bytes, in hexadecimal
    created_at_ms: int = Field(sa_column=big(null=False))
    pruned_at_ms: int | None = Field(default=None, sa_column=big())
    __table_args__ = (
        live_index("ix_payload_age", "pruned_at_ms IS NULL", "created_at_ms"),
        live_index("ix_payload_spilled", "spilled <> ''", "spilled"),
    )


class TriggerRow(SQLModel, table=True):
    """One immutable event, with the gate's verdict and its one disposition."""

    __tablename__ = "trigger"
    seq: int | None = Field(default=None, sa_column=serial())
    id: str = Field(unique=True)
    source: str
    kind: str
    thread_id: str = Field(index=True)
    actor_kind: str
    actor_id: str
    person: str = ""  # by the identity map: one person's ids over all sources (B6.11)
    trust: int
    edits_id: str | None = Field(default=None, index=True)  # the trigger that it changes (B1.4)
    urgent: bool = False  # by a rule, never by the text
    body_json: str
    payload_id: str = Field(index=True)
    occurred_at_ms: int | None = Field(default=None, sa_column=big())
    received_at_ms: int = Field(sa_column=big(null=False))
    verdict: str
    rule: str
    rules_version: str
    disposition: str
    reason: str
    __table_args__ = (live_index("ix_trigger_person", "person <> ''", "person", "seq"),)


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
    changed_at_ms: int = Field(sa_column=big(null=False))
    heard_at_ms: int | None = Field(default=None, sa_column=big())
    reconciled_at_ms: int | None = Field(default=None, sa_column=big())


class RulesRow(SQLModel, table=True):
    """A version of the gate's rules, as TOML; the newest ``seq`` is in force (B3.4)."""

    __tablename__ = "rules"
    seq: int | None = Field(default=None, sa_column=serial())
    version: str
    text: str
    by: str
    at_ms: int = Field(sa_column=big(null=False))


# ------------------------------------------------------------------ sessions
class Session(SQLModel, table=True):
    """A transcript's owner, and its place in the queue.

    ``ready_at_ms``: when it may run next, or NULL. ``lease_epoch``: one higher with each claim.
    ``fold_opened_ms`` and ``fold_due_ms``: the quiet window that is open (B2.5), or NULL.
    ``generation`` counts its compactions; ``prompt_tokens`` is how long its prompt was last, and
    ``private`` whether this generation has read what a public reply must not hold (B7.6).
    """

    id: str = Field(primary_key=True)
    kind: str
    agent: str
    work_id: str | None = Field(default=None, index=True)
    generation: int = 0
    prompt_tokens: int = 0
    private: bool = Field(default=False, sa_column=flag())
    taint: int
    ready_at_ms: int | None = Field(default=None, sa_column=big())
    fold_opened_ms: int | None = Field(default=None, sa_column=big())
    fold_due_ms: int | None = Field(default=None, sa_column=big())
    lease_epoch: int = 0
    lease_until_ms: int | None = Field(default=None, sa_column=big())
    home_seq: int = 0  # up to which version of a file it knows its agent's home
    failures: int = 0
    nudges: int = 0
    steps: int = 0
    ended_at_ms: int | None = Field(default=None, sa_column=big())
    pruned_at_ms: int | None = Field(default=None, sa_column=big())
    created_at_ms: int = Field(sa_column=big(null=False))
    __table_args__ = (
        live_index("ix_session_ready", "ready_at_ms IS NOT NULL", "ready_at_ms", "lease_until_ms"),
        live_index("ix_session_router", "kind = 'router'", "id"),
        live_index("ix_session_kept", "pruned_at_ms IS NULL", "ended_at_ms"),
    )


class Subscription(SQLModel, table=True):
    """A session follows a thread."""

    session_id: str = Field(primary_key=True)
    thread_id: str = Field(primary_key=True, index=True)
    created_at_ms: int = Field(sa_column=big(null=False))


class Delivery(SQLModel, table=True):
    """One trigger in one session's inbox; ``taken_n`` is the entry that took it."""

    id: int | None = Field(default=None, sa_column=serial())
    session_id: str
    trigger_id: str = Field(index=True)
    wake: bool
    strategy: str = "queue"  # what the turn was told to do with it (B9)
    folded: bool = Field(default=False, sa_column=flag())  # no reason for a turn by itself (B2.5)
    taken_n: int | None = None
    __table_args__ = (
        UniqueConstraint("session_id", "trigger_id"),
        live_index("ix_delivery_inbox", "taken_n IS NULL", "session_id", "wake"),
        live_index("ix_delivery_backlog", "taken_n IS NULL AND wake", "session_id"),
    )


class Handback(SQLModel, table=True):
    """A worker gave a trigger back; the router is not offered that worker for it again (B6.5)."""

    trigger_id: str = Field(primary_key=True)
    session_id: str = Field(primary_key=True)
    reason: str
    at_ms: int = Field(sa_column=big(null=False))


class Entry(SQLModel, table=True):
    """One message of a transcript, final when it is written; ``taint`` is its session's with it."""

    session_id: str = Field(primary_key=True)
    n: int = Field(primary_key=True)
    generation: int
    turn_id: str
    message_json: str
    digest: str = ""  # of a tool's result, ids and times left out
    ends_turn: bool = False  # the tool says that the model has nothing to add
    taint: int = 0
    at_ms: int = Field(sa_column=big(null=False))


class Turn(SQLModel, table=True):
    """One activation of a session."""

    id: str = Field(primary_key=True)
    session_id: str = Field(index=True)
    epoch: int
    started_at_ms: int = Field(sa_column=big(null=False))
    ended_at_ms: int | None = Field(default=None, sa_column=big())
    ending: str = ""
    steps: int = 0
    __table_args__ = (live_index("ix_turn_open", "ended_at_ms IS NULL", "session_id"),)


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
    private_to: str = ""  # the one person who may see it; empty: everybody who signs in
    created_at_ms: int = Field(sa_column=big(null=False))
    changed_at_ms: int = Field(sa_column=big(null=False))
    __table_args__ = (
        live_index("ix_work_private", "private_to <> ''", "private_to"),
        live_index("ix_work_live", "state <> 'completed' AND state <> 'cancelled'", "id"),
    )


class Relation(SQLModel, table=True):
    """``work_id`` is this of ``other_id``: child_of, follows, duplicates, blocks (B11.12)."""

    work_id: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    other_id: str = Field(primary_key=True, index=True)


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
    created_at_ms: int = Field(sa_column=big(null=False))
    deadline_ms: int = Field(sa_column=big(null=False))
    on_deadline: str
    state: str
    __table_args__ = (
        live_index("ix_wait_due", "state = 'open'", "deadline_ms"),
        live_index("ix_wait_source", "state = 'open'", "kind", "ref"),
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
    stdin_bytes: int = Field(default=0, sa_column=big(null=False))  # they are a row of ``output``
    background: bool = False
    epoch: int
    outcome: str = ""
    code: int | None = Field(default=None, sa_column=big())  # of Windows: unsigned, 32 bits
    started: str = "no"
    detail_json: str = "{}"
    sent: bool = False
    settled: bool = False  # its device was told that the final is stored
    reported: bool = False  # the tool message holds the end, so no trigger is needed for it
    stdout_bytes: int = Field(default=0, sa_column=big(null=False))
    stderr_bytes: int = Field(default=0, sa_column=big(null=False))
    created_at_ms: int = Field(sa_column=big(null=False))
    started_at_ms: int | None = Field(default=None, sa_column=big())
    ended_at_ms: int | None = Field(default=None, sa_column=big())
    pruned_at_ms: int | None = Field(default=None, sa_column=big())
    __table_args__ = (
        UniqueConstraint("session_id", "call_id"),
        Index("ix_job_device", "device_id", "settled"),
        live_index("ix_job_kept", "pruned_at_ms IS NULL", "ended_at_ms"),
    )


class WatchRow(SQLModel, table=True):
    """A job is watched: matching output, or the time, becomes a trigger of its session (B10.5)."""

    __tablename__ = "watch"
    id: str = Field(primary_key=True)
    job_id: str = Field(index=True)
    session_id: str
    pattern: str = ""  # of one line; empty: by the time alone
    every_ms: int | None = Field(default=None, sa_column=big())
    next_ms: int | None = Field(default=None, sa_column=big())
    stdout_seen: int = Field(default=0, sa_column=big(null=False))
    stderr_seen: int = Field(default=0, sa_column=big(null=False))
    fired: int = 0
    ended: bool = False
    __table_args__ = (live_index("ix_watch_due", "next_ms IS NOT NULL", "next_ms"),)


class Output(SQLModel, table=True):
    """A piece of a command's output, at its byte offset; of ``stdin`` there is one whole piece."""

    job_id: str = Field(primary_key=True)
    stream: str = Field(primary_key=True)
    offset: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


_TABLES = {**tables_world.METADATA.tables, **tables_people.METADATA.tables}
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
RULES: Table = _TABLES["rules"]
SESSION: Table = _TABLES["session"]
SUBSCRIPTION: Table = _TABLES["subscription"]
DELIVERY: Table = _TABLES["delivery"]
HANDBACK: Table = _TABLES["handback"]
ENTRY: Table = _TABLES["entry"]
TURN: Table = _TABLES["turn"]
WORK: Table = _TABLES["work"]
WAIT: Table = _TABLES["wait"]
RELATION: Table = _TABLES["relation"]
JOB: Table = _TABLES["job"]
WATCH: Table = _TABLES["watch"]
OUTPUT: Table = _TABLES["output"]
OUTBOX: Table = _TABLES["outbox"]
RECEIPT: Table = _TABLES["receipt"]
REQUEST: Table = _TABLES["request"]
TAINT: Table = _TABLES[tables_authority.TaintRow.__tablename__]
EFFECT_EDIT: Table = _TABLES[tables_authority.EffectEdit.__tablename__]
PERSON: Table = _TABLES["person"]
PERSON_ID: Table = _TABLES["person_id"]
DEVICE: Table = _TABLES["device"]
DEVICE_SHARE: Table = _TABLES["device_share"]
PLACEMENT: Table = _TABLES["placement"]
WORKSPACE: Table = _TABLES["workspace"]
AGENT: Table = _TABLES[tables_agents.AGENT]
HOME_FILE: Table = _TABLES[tables_agents.HOME_FILE]
MEMORY: Table = _TABLES[tables_agents.MEMORY]
LEDGER: Table = _TABLES["ledger"]
EVENT: Table = _TABLES["event"]
SNAPSHOT: Table = _TABLES[tables_recall.SnapshotRow.__tablename__]
SPENT: Table = tables_model.SPENT
BUDGET: Table = tables_model.BUDGET
ENDPOINT: Table = tables_model.ENDPOINT
