"""Tables of authority: what tainted a session, and how people changed effects; see ``tables``."""

from __future__ import annotations

from sqlmodel import Field, SQLModel

from upright.store.columns import big


class TaintRow(SQLModel, table=True):
    """What lowered a session's trust beside the triggers that it took (B14.3).

    ``ref`` names a session whose words it read, a trigger around which it read, or a job.
    """

    __tablename__ = "taint"
    session_id: str = Field(primary_key=True)
    ref: str = Field(primary_key=True)
    trust: int
    at_ms: int = Field(sa_column=big(null=False))


class EffectEdit(SQLModel, table=True):
    """A person changed the text of a held effect before approving it; ``n`` counts from 1."""

    __tablename__ = "effect_edit"
    outbox_id: str = Field(primary_key=True)
    n: int = Field(primary_key=True)
    by: str
    at_ms: int = Field(sa_column=big(null=False))
    was_text: str
    was_digest: str
    digest: str
