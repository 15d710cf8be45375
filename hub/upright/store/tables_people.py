"""Tables of people: accounts, how they come in, and what they did; see ``tables``.

What lets somebody in (a cookie, a token, a link's code) is kept as its SHA-256 alone.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Index, Table
from sqlmodel import Field, SQLModel

from upright.store.columns import big, flag, serial


class AccountRow(SQLModel, table=True):
    """Somebody who may sign in; ``name`` is the person's in ``[people]``."""

    __tablename__ = "account"
    id: str = Field(primary_key=True)
    name: str = Field(unique=True)
    role: str
    runs: bool = Field(default=False, sa_column=flag())  # the grant to let commands run
    email: str = ""
    made_by: str
    made_at_ms: int = Field(sa_column=big(null=False))
    seen_at_ms: int | None = Field(default=None, sa_column=big())
    revoked_at_ms: int | None = Field(default=None, sa_column=big())


class AccountSubject(SQLModel, table=True):
    """An account as an OpenID provider knows it."""

    __tablename__ = "account_subject"
    issuer: str = Field(primary_key=True)
    subject: str = Field(primary_key=True)
    account_id: str = Field(index=True)


class SignInRow(SQLModel, table=True):
    """One browser of one account; ``hash`` is its cookie's."""

    __tablename__ = "sign_in"
    id: str = Field(primary_key=True)
    hash: str = Field(unique=True)
    account_id: str = Field(index=True)
    remote: str
    agent: str
    made_at_ms: int = Field(sa_column=big(null=False))
    seen_at_ms: int = Field(sa_column=big(null=False))
    ends_at_ms: int = Field(sa_column=big(null=False))
    ended_at_ms: int | None = Field(default=None, sa_column=big())


class SignInLinkRow(SQLModel, table=True):
    """A one-time link; ``hash`` is its code's. The first visit spends it."""

    __tablename__ = "sign_in_link"
    hash: str = Field(primary_key=True)
    account_id: str
    made_at_ms: int = Field(sa_column=big(null=False))
    ends_at_ms: int = Field(sa_column=big(null=False))
    spent_at_ms: int | None = Field(default=None, sa_column=big())


class OidcFlowRow(SQLModel, table=True):
    """A sign-in that is under way at the OpenID provider; its return spends it."""

    __tablename__ = "oidc_flow"
    state_hash: str = Field(primary_key=True)
    browser_hash: str
    nonce: str
    verifier: str
    next: str
    ends_at_ms: int = Field(sa_column=big(null=False))


class ApiTokenRow(SQLModel, table=True):
    """A personal token for the API."""

    __tablename__ = "api_token"
    id: str = Field(primary_key=True)
    hash: str = Field(unique=True)
    account_id: str = Field(index=True)
    name: str
    scopes_json: str
    made_at_ms: int = Field(sa_column=big(null=False))
    ends_at_ms: int = Field(sa_column=big(null=False))
    used_at_ms: int | None = Field(default=None, sa_column=big())
    revoked_at_ms: int | None = Field(default=None, sa_column=big())


class AuditRow(SQLModel, table=True):
    """What somebody did or was refused; rows are added and, when old, pruned: never changed."""

    __tablename__ = "audit"
    seq: int | None = Field(default=None, sa_column=serial())
    at_ms: int = Field(sa_column=big(null=False))
    who: str
    account_id: str
    via: str
    action: str
    object: str
    outcome: str
    origin: str  # the address that it came from
    __table_args__ = (
        Index("ix_audit_who", "who", "seq"),
        Index("ix_audit_at", "at_ms"),
    )


METADATA: Final = SQLModel.metadata
_TABLES: Final = METADATA.tables
ACCOUNT: Final[Table] = _TABLES["account"]
ACCOUNT_SUBJECT: Final[Table] = _TABLES["account_subject"]
SIGN_IN: Final[Table] = _TABLES["sign_in"]
SIGN_IN_LINK: Final[Table] = _TABLES["sign_in_link"]
OIDC_FLOW: Final[Table] = _TABLES["oidc_flow"]
API_TOKEN: Final[Table] = _TABLES["api_token"]
AUDIT: Final[Table] = _TABLES["audit"]
