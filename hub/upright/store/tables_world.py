"""Tables of the world: outward effects, people, devices, and what happened; see ``tables``."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Index, LargeBinary
from sqlmodel import Field, SQLModel

from upright.store.columns import OwnXact, big, flag, live_index, serial


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
    lane: str = ""  # what keeps its order: one destination of one source (B15)
    text: str
    idempotency_key: str = Field(unique=True)
    digest: str
    state: str
    tries: int = 0
    may_be_visible: bool = False  # a sender died while sending it
    due_at_ms: int = Field(sa_column=big(null=False))
    expires_at_ms: int | None = Field(default=None, sa_column=big())
    reason: str = ""
    receipt_id: str = Field(default="", index=True)
    receipt_url: str = ""
    created_at_ms: int = Field(sa_column=big(null=False))
    settled_at_ms: int | None = Field(default=None, sa_column=big())
    __table_args__ = (
        Index("ix_outbox_due", "state", "due_at_ms"),
        live_index("ix_outbox_lane", "settled_at_ms IS NULL", "lane", "id"),
        live_index("ix_outbox_kept", "text <> ''", "settled_at_ms"),
    )


class ReceiptRow(SQLModel, table=True):
    """One id under which an effect of ours became visible: by it our own output is known (B1.5)."""

    __tablename__ = "receipt"
    source: str = Field(primary_key=True)
    native_id: str = Field(primary_key=True)
    outbox_id: str = Field(index=True)


class Request(SQLModel, table=True):
    """A pairing, an approval or a question: something only a person can answer.

    ``trust`` is the taint of the session that asks, ``cause_json`` and ``taint_json`` the ids of
    what made it ask and of what tainted it. ``no_route`` says why nobody would hear of it.
    """

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
    answered_at_ms: int | None = Field(default=None, sa_column=big())
    trust: int | None = None
    cause_json: str = "[]"
    taint_json: str = "[]"
    no_route: str = ""
    again_of: str | None = None  # the request that expired, which this asks once more
    created_at_ms: int = Field(sa_column=big(null=False))
    expires_at_ms: int = Field(sa_column=big(null=False))
    __table_args__ = (Index("ix_request_due", "state", "expires_at_ms"),)


class PersonRow(SQLModel, table=True):
    """A person beside those of the configuration (B6.11)."""

    __tablename__ = "person"
    name: str = Field(primary_key=True)
    kind: str
    added_at_ms: int = Field(sa_column=big(null=False))


class PersonId(SQLModel, table=True):
    """An id of a person: ``source:id``, or ``*:id`` for every source."""

    __tablename__ = "person_id"
    key: str = Field(primary_key=True)
    name: str = Field(index=True)


class Device(SQLModel, table=True):
    """A paired machine, pinned by its key.

    ``offered_json``: capabilities that it has and nobody has granted yet (E1.4). ``helper_json``:
    the argv prefix of its program for files. ``foreign_json``: commands that it holds and no row
    knows (E7). ``suspected_at_ms``: since when two machines seem to use its key (E2.3).
    """

    id: str = Field(primary_key=True)
    name: str
    owner: str = ""
    public_key: bytes = Field(sa_column=Column(LargeBinary, nullable=False, unique=True))
    state: str
    caps_json: str
    facts_json: str
    offered_json: str = "[]"
    helper_json: str = "[]"
    foreign_json: str = "[]"
    remote: str = ""
    suspected_at_ms: int | None = Field(default=None, sa_column=big())
    approved_at_ms: int = Field(sa_column=big(null=False))
    seen_at_ms: int | None = Field(default=None, sa_column=big())


class DeviceShare(SQLModel, table=True):
    """A person whose items a device runs beside its owner's (E10.2); ``*`` is everybody."""

    __tablename__ = "device_share"
    device_id: str = Field(primary_key=True)
    person: str = Field(primary_key=True)
    added_at_ms: int = Field(sa_column=big(null=False))


class Placement(SQLModel, table=True):
    """Where an item's worktree is: it stays there until a person moves it (E10.4)."""

    work_id: str = Field(primary_key=True)
    device_id: str = Field(index=True)
    path: str
    placed_at_ms: int = Field(sa_column=big(null=False))


class Workspace(SQLModel, table=True):
    """A root that a device announced, with the git remotes that bind repositories to it."""

    device_id: str = Field(primary_key=True)
    path: str = Field(primary_key=True)
    remotes_json: str
    label: str = ""


# ------------------------------------------------------------------ what happened
class Ledger(SQLModel, table=True):
    """What one model call, job or delivery cost (B16.1).

    ``kind`` is model, retry (tries of a call that gave nothing), job or effect.
    """

    seq: int | None = Field(default=None, sa_column=serial())
    at_ms: int = Field(sa_column=big(null=False, index=True))
    kind: str
    session_id: str = Field(index=True)
    work_id: str | None = Field(default=None, index=True)
    turn_id: str = Field(default="", index=True)
    source: str = ""  # of the trigger that it was for
    policy: str = ""  # the rule that judged that trigger
    agent: str = ""
    model: str = ""
    tries: int = 0  # HTTP requests that it took; of a `retry` those that failed in vain
    beside: bool = Field(default=False, sa_column=flag())  # a side call, not a step of the turn
    tokens_input: int = 0
    tokens_cached: int = 0
    tokens_output: int = 0
    usd_micros: int | None = Field(default=None, sa_column=big())
    seconds: float = 0.0


class Event(SQLModel, table=True):
    """One step on a trigger's way, by the name of its stop (A3): what ``upright why`` prints."""

    seq: int | None = Field(default=None, sa_column=serial())
    xact: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, default=OwnXact()))
    at_ms: int = Field(sa_column=big(null=False))
    stop: str
    trigger_id: str | None = None
    session_id: str | None = None
    work_id: str | None = None
    turn_id: str | None = None
    job_id: str | None = None
    outbox_id: str | None = None
    data_json: str = "{}"
    __table_args__ = tuple(
        live_index(f"ix_event_{column}", f"{column} IS NOT NULL", column)
        for column in ("trigger_id", "session_id", "work_id", "turn_id", "job_id", "outbox_id")
    )


METADATA: Final = SQLModel.metadata
"""All tables, these and those of ``tables``, once both are imported."""
