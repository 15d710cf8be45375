"""Admission: whom the configuration lets in at a first sign-in, and as what; nobody by default."""

from __future__ import annotations

from dataclasses import dataclass

from upright.core.roles import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What an OpenID provider has vouched for; ``email`` is empty unless it was verified."""

    issuer: str
    subject: str
    email: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who may come in, by role, and whose sign-in brings the grant to let commands run.

    Each entry is an address, ``@domain`` for every address of it, or ``sub:SUBJECT``.
    """

    admins: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    viewers: frozenset[str] = frozenset()
    runners: frozenset[str] = frozenset()

    def role_of(self, claims: Claims) -> Role | None:
        """Return the highest role that any entry gives; None: they are not let in."""
        named = _names(claims)
        by_role = {
            Role.ADMIN: self.admins,
            Role.OPERATOR: self.operators,
            Role.VIEWER: self.viewers,
        }
        return next((role for role, entries in by_role.items() if _has(entries, named)), None)

    def runs(self, claims: Claims) -> bool:
        """Say whether their commands may run on devices."""
        return _has(self.runners, _names(claims))


def _has(entries: frozenset[str], named: frozenset[str]) -> bool:
    return any(_folded(entry) in named for entry in entries)


def _folded(entry: str) -> str:
    """Fold an address, whose case means nothing; a subject's does (OpenID Connect Core, 2)."""
    return entry if entry.startswith("sub:") else entry.lower()


def _names(claims: Claims) -> frozenset[str]:
    """Return every entry that would mean these claims."""
    email = claims.email.lower()
    _, at, domain = email.rpartition("@")
    mail = {email, f"@{domain}"} if at and domain else set[str]()
    return frozenset({f"sub:{claims.subject}"} | mail)
