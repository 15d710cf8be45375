"""Auth: ``[auth]``, who may sign in and how. Without an issuer there are one-time links alone."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from upright.api import SecretRef
from upright.core.admission import Admission

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSection:
    """``[auth]``: an OpenID provider, whom it brings in as what, and how long anything lasts.

    Entries of ``admins``, ``operators``, ``viewers`` and ``runners`` are addresses, ``@domain`` or
    ``sub:SUBJECT``; nobody comes in whom none of them names. ``runners`` may let commands run on
    devices. ``trusted_proxies`` are the addresses whose X-Forwarded-For is believed.
    """

    issuer: str = ""
    client_id: str = ""
    client_secret: SecretRef | None = None
    admins: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    viewers: frozenset[str] = frozenset()
    runners: frozenset[str] = frozenset()
    trusted_proxies: frozenset[str] = frozenset()
    idle_s: int = 12 * 3600
    session_s: int = 14 * 24 * 3600
    link_s: int = 600
    token_days: int = 365
    tries_per_minute: int = 20
    clock_skew_s: int = 60

    def __post_init__(self) -> None:
        self._check_issuer()
        for proxy in self.trusted_proxies:
            try:
                ip_address(proxy)
            except ValueError as error:
                problem = f"trusted_proxies are addresses such as 127.0.0.1, not {proxy!r}"
                raise ValueError(problem) from error
        for entry in self.admins | self.operators | self.viewers | self.runners:
            if "@" not in entry and not entry.startswith("sub:"):
                problem = f"name an address, @domain or sub:SUBJECT, not {entry!r}"
                raise ValueError(problem)
        for name in ("idle_s", "session_s", "link_s", "token_days", "tries_per_minute"):
            if getattr(self, name) <= 0:
                problem = f"{name} must be above 0"
                raise ValueError(problem)
        if not 0 <= self.clock_skew_s <= 300:
            problem = "clock_skew_s must be between 0 and 300"
            raise ValueError(problem)

    def _check_issuer(self) -> None:
        address = urlsplit(self.issuer)
        if not self.issuer:
            return
        plain = address.scheme == "http" and address.hostname in LOOPBACK
        if not (address.scheme == "https" or plain) or not address.hostname or address.query:
            problem = "issuer must be an https address, as the provider writes it"
            raise ValueError(problem)
        if not self.client_id:
            problem = "client_id is missing: the provider gives it for this hub"
            raise ValueError(problem)

    def admission(self) -> Admission:
        """Return whom this lets in."""
        return Admission(
            admins=self.admins,
            operators=self.operators,
            viewers=self.viewers,
            runners=self.runners,
        )
