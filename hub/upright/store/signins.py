"""Sign-ins as rows: browsers that are in, one-time links, and visits to the OpenID provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from upright.store import accounts
from upright.store.accounts import Account
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.plain import Plain, columns
from upright.store.plain import listed as rows_of
from upright.store.tables_people import ACCOUNT, OIDC_FLOW, SIGN_IN, SIGN_IN_LINK
from upright.store.tokens import hashed
from upright.store.unit import Unit

MOST_FLOWS: Final = 1000
"""Visits to the provider that may be under way; the oldest are forgotten first."""
_SEEN_MS: Final = 60_000
MAX_AGENT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """What is known of a browser that signs in."""

    remote: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One browser of one account, as it stands."""

    id: str
    account: str
    seen_at_ms: int


# ------------------------------------------------------------------ browsers
def begin(u: Unit, account: Account, cookie: str, browser: Browser, *, life_ms: int) -> str:
    """Let a browser in under a fresh cookie; return the sign-in's id."""
    found = u.new_id("sign_in")
    u.c.execute(
        SIGN_IN.insert().values(
            id=found,
            hash=hashed(cookie),
            account_id=account.id,
            remote=browser.remote,
            agent=browser.agent[:MAX_AGENT],
            made_at_ms=u.now_ms,
            seen_at_ms=u.now_ms,
            ends_at_ms=u.now_ms + life_ms,
        )
    )
    u.c.execute(ACCOUNT.update().where(ACCOUNT.c.id == account.id).values(seen_at_ms=u.now_ms))
    return found


_STANDING: Final = sa.select(SIGN_IN).where(
    SIGN_IN.c.hash == sa.bindparam("hash"),
    SIGN_IN.c.ended_at_ms.is_(None),
    SIGN_IN.c.ends_at_ms > sa.bindparam("now"),
    SIGN_IN.c.seen_at_ms > sa.bindparam("idle"),
)


def standing(c: sa.Connection, cookie: str, now_ms: int, idle_ms: int) -> SignIn | None:
    """Return the sign-in that a cookie is of; None: it ended, by itself or by somebody."""
    asked = {"hash": hashed(cookie), "now": now_ms, "idle": now_ms - idle_ms}
    row = c.execute(_STANDING, asked).one_or_none()
    if row is None:
        return None
    return SignIn(id=row.id, account=row.account_id, seen_at_ms=row.seen_at_ms)


def is_due(found: SignIn, now_ms: int) -> bool:
    """Say whether it is worth noting that a browser was seen: once a minute is enough."""
    return found.seen_at_ms < now_ms - _SEEN_MS


def seen(u: Unit, sign_in: str) -> None:
    """Note that a browser was seen: its idle time begins anew."""
    mine = sa.and_(SIGN_IN.c.id == sign_in, SIGN_IN.c.ended_at_ms.is_(None))
    u.c.execute(SIGN_IN.update().where(mine).values(seen_at_ms=u.now_ms))


def end(u: Unit, sign_in: str, *, account: str | None) -> None:
    """Sign a browser out; *account* None: whosever it is.

    Raises:
        UnknownIdError: there is none, or it is somebody else's.
        NotNowError: it has ended.
    """
    row = u.c.execute(sa.select(SIGN_IN).where(SIGN_IN.c.id == sign_in)).one_or_none()
    if row is None or account not in {None, row.account_id}:
        raise UnknownIdError(sign_in)
    if row.ended_at_ms is not None:
        raise NotNowError(sign_in, "it has ended already")
    u.c.execute(SIGN_IN.update().where(SIGN_IN.c.id == sign_in).values(ended_at_ms=u.now_ms))


def forget(u: Unit, cookie: str) -> None:
    """Sign out the browser that came with this cookie, if there is one."""
    mine = sa.and_(SIGN_IN.c.hash == hashed(cookie), SIGN_IN.c.ended_at_ms.is_(None))
    u.c.execute(SIGN_IN.update().where(mine).values(ended_at_ms=u.now_ms))


def listed(c: sa.Connection, *, account: str | None, now_ms: int) -> list[Plain]:
    """List browsers that are in, the newest first; *account* None: everybody's."""
    live = sa.and_(SIGN_IN.c.ended_at_ms.is_(None), SIGN_IN.c.ends_at_ms > now_ms)
    query = sa.select(*columns(SIGN_IN, without=["hash"])).where(live)
    if account is not None:
        query = query.where(SIGN_IN.c.account_id == account)
    return rows_of(c, query.order_by(SIGN_IN.c.made_at_ms.desc(), SIGN_IN.c.id))


# ------------------------------------------------------------------ one-time links
def add_link(u: Unit, account: Account, code: str, *, life_ms: int) -> None:
    """Keep a link's code, as a hash; old ones are forgotten."""
    u.c.execute(SIGN_IN_LINK.delete().where(SIGN_IN_LINK.c.ends_at_ms <= u.now_ms))
    u.c.execute(
        SIGN_IN_LINK.insert().values(
            hash=hashed(code),
            account_id=account.id,
            made_at_ms=u.now_ms,
            ends_at_ms=u.now_ms + life_ms,
        )
    )


def spend_link(u: Unit, code: str, *, here: bool) -> Account | None:
    """Spend a link; None: there is none, it is too old, or somebody has been here before.

    Two visits at once: one of them wins. One for the machine's owner is spent *here* alone.
    """
    mine = sa.and_(
        SIGN_IN_LINK.c.hash == hashed(code),
        SIGN_IN_LINK.c.spent_at_ms.is_(None),
        SIGN_IN_LINK.c.ends_at_ms > u.now_ms,
        *([] if here else [SIGN_IN_LINK.c.account_id != accounts.LOCAL_ID]),
    )
    account = u.c.scalar(sa.select(SIGN_IN_LINK.c.account_id).where(mine))
    spent = u.c.execute(SIGN_IN_LINK.update().where(mine).values(spent_at_ms=u.now_ms))
    if account is None or spent.rowcount == 0:
        return None
    found = accounts.read(u.c, account)
    return found if found is not None and not found.revoked else None


# ------------------------------------------------------------------ visits to the provider
@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A visit to the OpenID provider: what its return must match, and where to go then."""

    nonce: str
    verifier: str
    next: str


def add_flow(u: Unit, state: str, browser: str, flow: Flow, *, life_ms: int) -> None:
    """Keep a visit that begins; *browser* is the secret in the cookie of who begins it."""
    u.c.execute(OIDC_FLOW.delete().where(OIDC_FLOW.c.ends_at_ms <= u.now_ms))
    kept = sa.select(OIDC_FLOW.c.state_hash).order_by(OIDC_FLOW.c.ends_at_ms.desc())
    surplus = list(u.c.scalars(kept.offset(MOST_FLOWS - 1)))
    u.c.execute(OIDC_FLOW.delete().where(OIDC_FLOW.c.state_hash.in_(surplus)))
    u.c.execute(
        OIDC_FLOW.insert().values(
            state_hash=hashed(state),
            browser_hash=hashed(browser),
            nonce=flow.nonce,
            verifier=flow.verifier,
            next=flow.next,
            ends_at_ms=u.now_ms + life_ms,
        )
    )


def take_flow(u: Unit, state: str, browser: str) -> Flow | None:
    """Take a visit back, once; None: there is none, it is too old, or another browser's."""
    mine = sa.and_(
        OIDC_FLOW.c.state_hash == hashed(state),
        OIDC_FLOW.c.browser_hash == hashed(browser),
        OIDC_FLOW.c.ends_at_ms > u.now_ms,
    )
    row = u.c.execute(sa.select(OIDC_FLOW).where(mine)).one_or_none()
    if row is None or u.c.execute(OIDC_FLOW.delete().where(mine)).rowcount == 0:
        return None
    return Flow(nonce=row.nonce, verifier=row.verifier, next=row.next)
