"""Tables of recall: what a reader was shown, so that reading on shows the same; see ``tables``."""

from __future__ import annotations

from sqlmodel import Field, SQLModel

from upright.store.columns import big


class SnapshotRow(SQLModel, table=True):
    """The text of something that may change, as one reader began to read it (B7.4).

    ``reader`` is a session's id, or who looks from outside. Reading anew replaces it.
    """

    __tablename__ = "snapshot"
    reader: str = Field(primary_key=True)
    object_id: str = Field(primary_key=True)
    part: str = Field(primary_key=True)
    text: str
    trust: int
    private: bool
    at_ms: int = Field(sa_column=big(null=False, index=True))
