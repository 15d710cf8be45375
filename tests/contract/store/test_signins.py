"""Who comes in, as rows, on both databases: what lets somebody in is spent once, and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest
import sqlalchemy as sa

from fixtures.databases import connected
from upright.core.admission import Claims
from upright.core.roles import Role, Scope
from upright.store import accounts, audit_trail, retention, signins, tokens
from upright.store.acting import Deed, acting, by
from upright.store.address import Address
from upright.store.audit_trail import Wanted
from upright.store.errors import NotNowError, UnknownIdError
from upright.store.signins import Browser, Flow
from upright.store.tables_people import AUDIT
from upright.store.unit import Unit

BROWSER: Final = Browser(remote="203.0.113.1", agent="a browser")
CLAIMS: Final = Claims(issuer="https://id.example.org", subject="1815", email="ada@example.org")
FLOW: Final = Flow(nonce="n", verifier="v", next="/")
DEED: Final = Deed(
    who="ada", account="ac_1", via="session", action="work.cancel", object="wk_1", origin="::1"
)

At = Callable[[int], Unit]


@pytest.fixture
def at(address: Address) -> Iterator[At]:
    """Make units at any time, on one connection."""
    count = iter(range(10_000))
    with connected(address) as c:
        yield lambda ms: Unit(c, ms, lambda kind: f"{kind}_{next(count)}", by="boss")


def test_an_account_is_made_changed_revoked_and_lives_again(at: At) -> None:
    u = at(1)
    made = accounts.give(u, "ada", Role.VIEWER, runs=False)
    accounts.give(u, "ada", Role.ADMIN, runs=True)
    found = accounts.need(u.c, "ada")
    assert (found.id, found.role, found.runs) == (made.id, Role.ADMIN, True)
    accounts.revoke(u, "ada")
    with pytest.raises(NotNowError, match="revoked"):
        accounts.need(u.c, "ada")
    with pytest.raises(NotNowError):
        accounts.revoke(u, "ada")
    accounts.give(u, "ada", Role.VIEWER, runs=False)
    assert accounts.need(u.c, "ada").role is Role.VIEWER
    with pytest.raises(UnknownIdError):
        accounts.need(u.c, "eve")


def test_a_subject_is_one_account(at: At) -> None:
    u = at(1)
    assert accounts.by_claims(u.c, CLAIMS) is None
    ada = accounts.give(u, "ada", Role.VIEWER, runs=False)
    accounts.join(u, ada, CLAIMS)
    found = accounts.by_claims(u.c, CLAIMS)
    assert found is not None
    assert found.id == ada.id


def test_a_revoked_persons_browsers_and_tokens_end(at: At) -> None:
    u = at(1)
    ada = accounts.give(u, "ada", Role.VIEWER, runs=False)
    signins.begin(u, ada, "cookie", BROWSER, life_ms=100)
    secret = tokens.written(b"\x01" * tokens.RANDOM_BYTES)
    scopes = frozenset({Scope.READ})
    tokens.add(u, ada, secret, name="t", scopes=scopes, ends_at_ms=100)
    assert signins.standing(u.c, "cookie", 50, 60) is not None
    assert tokens.holding(u.c, secret, 50) is not None
    accounts.revoke(u, "ada")
    assert signins.standing(u.c, "cookie", 50, 60) is None
    assert tokens.holding(u.c, secret, 50) is None


def test_a_sign_in_stands_until_it_is_idle_or_over(at: At) -> None:
    u = at(0)
    signins.begin(u, accounts.LOCAL, "cookie", BROWSER, life_ms=100)
    assert signins.standing(u.c, "cookie", 59, 60) is not None
    assert signins.standing(u.c, "cookie", 60, 59) is None
    assert signins.standing(u.c, "cookie", 99, 999) is not None
    assert signins.standing(u.c, "cookie", 100, 999) is None


def test_a_link_is_spent_by_the_first_visit(at: At) -> None:
    u = at(0)
    signins.add_link(u, accounts.LOCAL, "code", life_ms=100)
    assert signins.spend_link(at(100), "code", here=True) is None
    assert signins.spend_link(at(99), "code", here=False) is None  # and it is not spent by that
    assert signins.spend_link(at(99), "code", here=True) is accounts.LOCAL
    assert signins.spend_link(at(99), "code", here=True) is None
    assert signins.spend_link(at(99), "another", here=True) is None


def test_a_visit_comes_back_once_in_time_and_to_its_own_browser(at: At) -> None:
    u = at(0)
    signins.add_flow(u, "state", "browser", FLOW, life_ms=100)
    assert signins.take_flow(at(1), "state", "another") is None
    assert signins.take_flow(at(100), "state", "browser") is None
    assert signins.take_flow(at(99), "state", "browser") == FLOW
    assert signins.take_flow(at(99), "state", "browser") is None


def test_visits_that_never_come_back_do_not_pile_up(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signins, "MOST_FLOWS", 3)
    for n in range(6):
        signins.add_flow(at(n), f"state {n}", "browser", FLOW, life_ms=100)
    left = [n for n in range(6) if signins.take_flow(at(6), f"state {n}", "browser")]
    assert left == [3, 4, 5]


def test_a_tokens_form_is_known_by_its_check() -> None:
    secret = tokens.written(b"\x07" * tokens.RANDOM_BYTES)
    assert tokens.is_one(secret)
    assert not tokens.is_one(secret[:-1] + ("0" if secret[-1] != "0" else "1"))
    assert not tokens.is_one(secret[5:])
    assert not tokens.is_one("")


def test_the_trail_is_read_by_who_what_and_when(at: At) -> None:
    for ms, outcome in ((10, "done"), (20, "role.too_low")):
        audit_trail.add(at(ms), DEED, outcome)
    u = at(30)
    assert [row["at_ms"] for row in audit_trail.rows(u.c, Wanted(who="ada"))] == [20, 10]
    assert [row["at_ms"] for row in audit_trail.rows(u.c, Wanted(since_ms=20))] == [20]
    assert audit_trail.rows(u.c, Wanted(action="work%")) == []
    assert len(audit_trail.rows(u.c, Wanted(action="work"))) == 2
    assert len(audit_trail.rows(u.c, Wanted(limit=1))) == 1


def test_the_trail_is_kept_for_its_time(at: At) -> None:
    for ms in (10, 20, 30):
        audit_trail.add(at(ms), DEED)
    u = at(40)
    assert retention.audit(u, 25).rows == 2
    assert u.c.scalar(sa.select(sa.func.count()).select_from(AUDIT)) == 1


def test_the_hub_acts_by_itself_unless_somebody_does() -> None:
    assert by() == "operator"
    with acting(DEED):
        assert by() == "ada"
    assert by() == "operator"
