"""Doors: what signing in needs of the rest of the hub: rows, chance, bounds, the provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from upright.core.admission import Admission
from upright.core.trigger import People
from upright.engine.rate import Rate
from upright.engine.units import Units
from upright.store.unit import Connection
from upright.web.oidc import Provider

COOKIE_BYTES: Final = 32
CODE_BYTES: Final = 16
SIGN_INS_PER_MINUTE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long anything lasts, in milliseconds; whom a first sign-in lets in.

    ``secure``: the hub is reached by https, so cookies go there alone. ``origin`` is its public
    address without a path; empty: it has none. ``proxies`` are those whose word counts.
    """

    idle_ms: int = 12 * 3_600_000
    life_ms: int = 14 * 86_400_000
    link_ms: int = 600_000
    token_days: int = 365
    admission: Admission = field(default_factory=Admission)
    origin: str = ""
    proxies: frozenset[str] = frozenset()

    @property
    def secure(self) -> bool:
        """Whether browsers reach this hub by https."""
        return self.origin.startswith("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The parts. ``failed`` counts wrong secrets by address, ``entered`` sign-ins by account."""

    units: Units
    terms: Terms
    random_bytes: Callable[[int], bytes]
    failed: Rate
    entered: Rate
    provider: Provider | None = None
    people: Callable[[Connection], People] = lambda _: People()

    def secret(self, size: int) -> str:
        """Make a fresh secret of *size* random bytes, as hexadecimal digits."""
        return self.random_bytes(size).hex()
