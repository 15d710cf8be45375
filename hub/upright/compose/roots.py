"""Roots: what the outside world gives a hub before anything of it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from upright.api import Secret
from upright.settings.shape import Settings
from upright.store.address import Address
from upright.store.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """What the outside world gives: the store, the environment as it was read, the free port."""

    settings: Settings
    store: Storage
    env: Mapping[str, str]
    port: int
    where: Address
    oidc: Secret | None = None  # this hub's secret at the OpenID provider
