"""Tokens as rows: personal ones for the API, kept as hashes, with scopes and an end."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import sqlalchemy as sa

from upright.core.roles import Scope, scopes_of
from upright.store import codec
from upright.store.accounts import Account
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.plain import Plain
from upright.store.tables_people import API_TOKEN
from upright.store.unit import Unit

PREFIX: Final = "uprt_"
"""What secret scanners know ours by: this, and 54 hexadecimal digits; the last 6 are a check."""
RANDOM_BYTES: Final = 24
_CHECK: Final = 6
_SEEN_MS: Final = 60_000
SOON_MS: Final = 7 * 86_400_000
"""How long before its end a token is said to end."""


class State(StrEnum):
    """What a token is now; ``ending``: it holds, and will not for long."""

    ACTIVE = "active"
    ENDING = "ending"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that holds now."""

    id: str
    account: str
    scopes: frozenset[Scope]
    ends_at_ms: int
    used_at_ms: int = 0


def written(random: bytes) -> str:
    """Write a token of :data:`RANDOM_BYTES` random bytes."""
    body = random.hex()
    return f"{PREFIX}{body}{_check(body)}"


def is_one(text: str) -> bool:
    """Say whether a text has the form of a token, its check included."""
    body = text.removeprefix(PREFIX)
    whole = len(text) == len(PREFIX) + 2 * RANDOM_BYTES + _CHECK and text.startswith(PREFIX)
    return whole and _check(body[:-_CHECK]) == body[-_CHECK:]


def _check(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:_CHECK]


def hashed(secret: str) -> str:
    """Return what is stored of a secret that is random enough to need no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def add(
    u: Unit, account: Account, secret: str, *, name: str, scopes: frozenset[Scope], ends_at_ms: int
) -> str:
    """Keep a token's hash; return its id."""
    token = u.new_id("token")
    u.c.execute(
        API_TOKEN.insert().values(
            id=token,
            hash=hashed(secret),
            account_id=account.id,
            name=name,
            scopes_json=codec.STRINGS.dump(tuple(sorted(scopes))),
            made_at_ms=u.now_ms,
            ends_at_ms=ends_at_ms,
        )
    )
    return token


_HELD: Final = sa.select(API_TOKEN).where(
    API_TOKEN.c.hash == sa.bindparam("hash"),
    API_TOKEN.c.revoked_at_ms.is_(None),
    API_TOKEN.c.ends_at_ms > sa.bindparam("now"),
)


def holding(c: sa.Connection, secret: str, now_ms: int) -> Token | None:
    """Return the token that this is; None: there is none, or it ended.

    It is looked for by its hash: how long that takes says nothing about the token.
    """
    row = c.execute(_HELD, {"hash": hashed(secret), "now": now_ms}).one_or_none()
    if row is None:
        return None
    scopes = scopes_of(codec.STRINGS.load(row.scopes_json))
    return Token(
        id=row.id,
        account=row.account_id,
        scopes=scopes,
        ends_at_ms=row.ends_at_ms,
        used_at_ms=row.used_at_ms or 0,
    )


def was_one(c: sa.Connection, secret: str) -> bool:
    """Say whether this is a token that was made here once, whatever became of it."""
    mine = sa.select(API_TOKEN.c.id).where(API_TOKEN.c.hash == hashed(secret))
    return c.scalar(mine) is not None


def is_due(found: Token, now_ms: int) -> bool:
    """Say whether it is worth noting that a token was used: once a minute is enough."""
    return found.used_at_ms < now_ms - _SEEN_MS


def used(u: Unit, token: str) -> None:
    """Note that a token was used."""
    mine = API_TOKEN.update().where(API_TOKEN.c.id == token)
    u.c.execute(mine.values(used_at_ms=u.now_ms))


def revoke(u: Unit, token: str, *, account: str | None) -> None:
    """End a token; *account* None: whosever it is.

    Raises:
        UnknownIdError: there is none, or it is somebody else's.
        NotNowError: it was revoked before.
    """
    row = u.c.execute(sa.select(API_TOKEN).where(API_TOKEN.c.id == token)).one_or_none()
    if row is None or account not in {None, row.account_id}:
        raise UnknownIdError(token)
    if row.revoked_at_ms is not None:
        raise NotNowError(token, "it is revoked already")
    mine = API_TOKEN.update().where(API_TOKEN.c.id == token)
    u.c.execute(mine.values(revoked_at_ms=u.now_ms))


def ending(c: sa.Connection, now_ms: int) -> int:
    """Count the tokens that end soon."""
    soon = API_TOKEN.c.ends_at_ms.between(now_ms + 1, now_ms + SOON_MS)
    query = sa.select(sa.func.count()).where(soon, API_TOKEN.c.revoked_at_ms.is_(None))
    return int(c.execute(query).scalar_one())


def listed(c: sa.Connection, *, account: str | None, now_ms: int) -> list[Plain]:
    """List tokens, the newest first, without hashes; *account* None: everybody's."""
    query = sa.select(API_TOKEN).order_by(API_TOKEN.c.made_at_ms.desc(), API_TOKEN.c.id)
    if account is not None:
        query = query.where(API_TOKEN.c.account_id == account)
    return [
        {
            "id": row.id,
            "account": row.account_id,
            "name": row.name,
            "scopes": list(codec.STRINGS.load(row.scopes_json)),
            "made_at_ms": row.made_at_ms,
            "ends_at_ms": row.ends_at_ms,
            "used_at_ms": row.used_at_ms,
            "revoked_at_ms": row.revoked_at_ms,
            "state": _state(row.ends_at_ms, row.revoked_at_ms, now_ms).value,
        }
        for row in c.execute(query)
    ]


def _state(ends_at_ms: int, revoked_at_ms: int | None, now_ms: int) -> State:
    if revoked_at_ms is not None:
        return State.REVOKED
    if ends_at_ms <= now_ms:
        return State.EXPIRED
    return State.ENDING if ends_at_ms <= now_ms + SOON_MS else State.ACTIVE
