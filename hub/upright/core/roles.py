"""Roles: what a signed-in person may do, and what a token of theirs may do of it (S5)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Final

from upright.core.errors import InvalidError


class Role(IntEnum):
    """How much a person may do; a higher one may do all that a lower one may."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """The role as people write it."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Role:
        """Read a role.

        Raises:
            InvalidError: there is none of this name.
        """
        for role in cls:
            if role.word == word:
                return role
        raise InvalidError(role=word[:40], known="viewer, operator, admin")


class Scope(StrEnum):
    """What a token is for; what its owner may not do, it may not do either."""

    READ = "read"
    ACT = "act"
    ADMIN = "admin"
    EXEC = "exec"


ALL: Final = frozenset(Scope)
_CEILING: Final = {
    Scope.READ: Role.VIEWER,
    Scope.ACT: Role.OPERATOR,
    Scope.ADMIN: Role.ADMIN,
}


def scopes_of(words: Iterable[str]) -> frozenset[Scope]:
    """Read scopes.

    Raises:
        InvalidError: one is unknown, or there is none that says how much may be done.
    """
    named = tuple(words)
    known = {scope.value for scope in Scope}
    for word in named:
        if word not in known:
            raise InvalidError(scope=word[:40], known="read, act, admin, exec")
    scopes = frozenset(Scope(word) for word in named)
    if not scopes & _CEILING.keys():
        raise InvalidError(scopes=", ".join(sorted(scopes)), missing="one of read, act, admin")
    return scopes


def narrowed(role: Role, scopes: frozenset[Scope]) -> Role:
    """Return what is left of *role* under a token's scopes."""
    return min(role, max(_CEILING[scope] for scope in scopes & _CEILING.keys()))
