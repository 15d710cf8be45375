"""Tables of agents: who there is, the files of their homes, what was remembered; see ``tables``."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from upright.store.columns import big, flag, live_index, serial


class AgentRow(SQLModel, table=True):
    """An agent: a long-lived identity with a home (B17)."""

    __tablename__ = "agent"
    name: str = Field(primary_key=True)
    template: str
    added_by: str
    added_at_ms: int = Field(sa_column=big(null=False))


class HomeFile(SQLModel, table=True):
    """One version of a file of a home; the highest is what holds (B17.1).

    ``trust``: how far whoever wrote it was to be trusted. ``deleted``: there is no such file from
    this version on.
    """

    __tablename__ = "home_file"
    seq: int | None = Field(default=None, sa_column=serial())
    agent: str
    path: str
    version: int
    text: str
    sha256: str
    author: str
    trust: int
    deleted: bool = Field(default=False, sa_column=flag())
    at_ms: int = Field(sa_column=big(null=False))
    __table_args__ = (
        UniqueConstraint("agent", "path", "version"),
        Index("ix_home_file_age", "at_ms"),
    )


class MemoryRow(SQLModel, table=True):
    """What the router remembers, and from where it knows it (B5.4).

    ``cue`` is the kind of trigger that a routing is about; empty for a sentence. ``times``: how
    often the same came out. What is superseded is kept, and names its successor.
    """

    __tablename__ = "memory"
    id: str = Field(primary_key=True)
    kind: str
    cue: str = ""
    text: str
    sources_json: str
    author: str
    session_id: str
    turn_id: str
    trust: int
    times: int = 1
    at_ms: int = Field(sa_column=big(null=False))
    superseded_by: str | None = None
    superseded_at_ms: int | None = Field(default=None, sa_column=big())
    __table_args__ = (
        live_index("ix_memory_live", "superseded_by IS NULL", "kind", "cue", "at_ms"),
        live_index("ix_memory_old", "superseded_by IS NOT NULL", "superseded_at_ms"),
    )


AGENT: Final = "agent"
HOME_FILE: Final = "home_file"
MEMORY: Final = "memory"
