from __future__ import annotations

import pytest

from upright.core.admission import Admission, Claims
from upright.core.roles import Role

TEAM = Admission(
    admins=frozenset({"Ada@example.org"}),
    operators=frozenset({"@example.org", "sub:Boss"}),
    viewers=frozenset({"@example.com", "ada@example.org"}),
    runners=frozenset({"sub:Boss"}),
)


def claims(subject: str = "1", email: str = "") -> Claims:
    return Claims(issuer="https://id.example.org", subject=subject, email=email)


@pytest.mark.parametrize(
    ("who", "role"),
    [
        (claims(email="ada@example.org"), Role.ADMIN),
        (claims(email="ADA@EXAMPLE.ORG"), Role.ADMIN),
        (claims(email="bob@example.org"), Role.OPERATOR),
        (claims(email="bob@example.com"), Role.VIEWER),
        (claims(subject="Boss"), Role.OPERATOR),
        (claims(subject="boss"), None),
        (claims(email="bob@sub.example.org"), None),
        (claims(email="bob@evil-example.org"), None),
        (claims(email="@example.org"), Role.OPERATOR),
        (claims(email="example.org"), None),
        (claims(subject="ada@example.org"), None),
        (claims(subject="@example.org"), None),
        (claims(email="bob@"), None),
        (claims(), None),
    ],
)
def test_the_highest_role_that_an_entry_gives_is_theirs(who: Claims, role: Role | None) -> None:
    assert TEAM.role_of(who) is role


def test_nobody_comes_in_by_default() -> None:
    assert Admission().role_of(claims(email="ada@example.org")) is None


def test_the_grant_to_let_commands_run_is_a_list_of_its_own() -> None:
    assert TEAM.runs(claims(subject="Boss"))
    assert not TEAM.runs(claims(email="ada@example.org"))
