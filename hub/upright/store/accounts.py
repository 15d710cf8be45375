"""Accounts as rows: who may sign in, as what. An account is named as its person in ``[people]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.core.admission import Claims
from upright.core.roles import Role
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.events import About, record
from upright.store.tables_people import (
    ACCOUNT,
    ACCOUNT_SUBJECT,
    API_TOKEN,
    SIGN_IN,
    SIGN_IN_LINK,
)
from upright.store.unit import Unit

LOCAL_ID: Final = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who may sign in; ``runs``: the grant to let commands run on devices."""

    id: str
    name: str
    role: Role
    runs: bool = False
    email: str = ""
    revoked: bool = False
    made_at_ms: int = 0
    seen_at_ms: int | None = None


LOCAL: Final = Account(id=LOCAL_ID, name=LOCAL_ID, role=Role.ADMIN, runs=True)
"""The owner of the machine that the hub runs on; it is no row, and can't be revoked."""


def read(c: sa.Connection, account: str) -> Account | None:
    """Read an account by its id, revoked or not."""
    if account == LOCAL_ID:
        return LOCAL
    row = c.execute(sa.select(ACCOUNT).where(ACCOUNT.c.id == account)).one_or_none()
    return _account(row) if row is not None else None


def named(c: sa.Connection, name: str) -> Account | None:
    """Read an account by its person's name, revoked or not."""
    if name == LOCAL_ID:
        return LOCAL
    row = c.execute(sa.select(ACCOUNT).where(ACCOUNT.c.name == name)).one_or_none()
    return _account(row) if row is not None else None


def need(c: sa.Connection, name: str) -> Account:
    """Read an account that can be used.

    Raises:
        UnknownIdError: there is none of this name.
        NotNowError: it was revoked.
    """
    found = named(c, name)
    if found is None:
        raise UnknownIdError(name)
    if found.revoked:
        raise NotNowError(name, "this account was revoked; give it a role again first")
    return found


def by_claims(c: sa.Connection, claims: Claims) -> Account | None:
    """Read the account that an OpenID provider's subject was joined with."""
    mine = (ACCOUNT_SUBJECT.c.issuer == claims.issuer, ACCOUNT_SUBJECT.c.subject == claims.subject)
    account = c.scalar(sa.select(ACCOUNT_SUBJECT.c.account_id).where(*mine))
    return read(c, account) if account is not None else None


def listed(c: sa.Connection) -> list[Account]:
    """List all accounts by name, revoked ones too."""
    return [_account(row) for row in c.execute(sa.select(ACCOUNT).order_by(ACCOUNT.c.name))]


def give(u: Unit, name: str, role: Role, *, runs: bool, email: str = "") -> Account:
    """Give a person a role: make their account, or change it; one that was revoked lives again.

    Links that were made for what they were before lead nowhere.

    Raises:
        NotNowError: this is the machine's owner, who has every right already.
    """
    if name == LOCAL_ID:
        raise NotNowError(name, "the owner of this machine has every right already")
    if (found := named(u.c, name)) is None:
        account = u.new_id("account")
        made = {"made_by": u.by, "made_at_ms": u.now_ms, "email": email}
        u.c.execute(
            ACCOUNT.insert().values(id=account, name=name, role=role.word, runs=runs, **made)
        )
    else:
        account = found.id
        mine = ACCOUNT.update().where(ACCOUNT.c.id == account)
        u.c.execute(mine.values(role=role.word, runs=runs, revoked_at_ms=None))
        _drop_links(u, account)
    record(u, "account.given", About(), {"name": name, "role": role.word, "exec": runs})
    return Account(id=account, name=name, role=role, runs=runs, email=email)


def join(u: Unit, account: Account, claims: Claims) -> None:
    """Say that an OpenID provider's subject is this account's."""
    values = {"issuer": claims.issuer, "subject": claims.subject, "account_id": account.id}
    u.c.execute(ACCOUNT_SUBJECT.insert().values(values))


def revoke(u: Unit, name: str) -> Account:
    """Take everything away from a person: every sign-in ends, every token and link is dead.

    Raises:
        UnknownIdError: there is no such account.
        NotNowError: it is the machine's owner, or was revoked before.
    """
    account = need(u.c, name)
    if account is LOCAL:
        raise NotNowError(name, "the owner of this machine can't be revoked")
    at = u.now_ms
    u.c.execute(ACCOUNT.update().where(ACCOUNT.c.id == account.id).values(revoked_at_ms=at))
    live = sa.and_(SIGN_IN.c.account_id == account.id, SIGN_IN.c.ended_at_ms.is_(None))
    u.c.execute(SIGN_IN.update().where(live).values(ended_at_ms=at))
    theirs = sa.and_(API_TOKEN.c.account_id == account.id, API_TOKEN.c.revoked_at_ms.is_(None))
    u.c.execute(API_TOKEN.update().where(theirs).values(revoked_at_ms=at))
    _drop_links(u, account.id)
    record(u, "account.revoked", About(), {"name": name})
    return account


def _drop_links(u: Unit, account: str) -> None:
    u.c.execute(SIGN_IN_LINK.delete().where(SIGN_IN_LINK.c.account_id == account))


def _account(row: sa.Row[tuple[object, ...]]) -> Account:
    return Account(
        id=row.id,
        name=row.name,
        role=Role.of(row.role),
        runs=row.runs,
        email=row.email,
        revoked=row.revoked_at_ms is not None,
        made_at_ms=row.made_at_ms,
        seen_at_ms=row.seen_at_ms,
    )
