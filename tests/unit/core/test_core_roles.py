from __future__ import annotations

import pytest

from upright.core.errors import InvalidError
from upright.core.roles import Role, Scope, narrowed, scopes_of


def test_a_higher_role_is_more_than_a_lower_one() -> None:
    assert Role.VIEWER < Role.OPERATOR < Role.ADMIN


@pytest.mark.parametrize("role", Role)
def test_a_role_is_read_as_it_is_written(role: Role) -> None:
    assert Role.of(role.word) is role


def test_an_unknown_role_is_refused_by_name() -> None:
    with pytest.raises(InvalidError, match="role root, known viewer, operator, admin"):
        Role.of("root")


def test_scopes_are_read_by_their_words() -> None:
    assert scopes_of(["read", "exec", "read"]) == {Scope.READ, Scope.EXEC}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["write"], "scope write, known"),
        ([], "missing one of read"),
        (["exec"], "scopes exec, missing"),
    ],
)
def test_scopes_that_say_nothing_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        scopes_of(words)


@pytest.mark.parametrize(
    ("role", "scopes", "left"),
    [
        (Role.ADMIN, {Scope.READ}, Role.VIEWER),
        (Role.ADMIN, {Scope.READ, Scope.ACT, Scope.EXEC}, Role.OPERATOR),
        (Role.VIEWER, {Scope.ADMIN}, Role.VIEWER),
        (Role.ADMIN, {Scope.ADMIN}, Role.ADMIN),
    ],
)
def test_a_token_never_may_more_than_its_owner_nor_than_its_scopes(
    role: Role, scopes: set[Scope], left: Role
) -> None:
    assert narrowed(role, frozenset(scopes)) is left
