"""Endpoint: where the model is, which model plays which role, and the bounds of one call."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from upright.api import Secret
from upright.core.backoff import Backoff
from upright.engine.ports import ModelRequestError
from upright.llm.prices import PRICE_LIST, PriceList

BACKOFF: Final = Backoff(base_s=0.5, cap_s=20.0, max_tries=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long and how often one call may try.

    ``first_byte_s`` runs from the request to its first chunk, ``idle_s`` from chunk to chunk,
    ``whole_s`` over one try. A Retry-After above ``max_retry_after_s`` is not slept here: the
    caller gets it with the error, and waits without holding anything.
    """

    connect_s: float = 10.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0
    whole_s: float = 1_800.0
    backoff: Backoff = field(default=BACKOFF)
    max_retry_after_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """One OpenAI-compatible endpoint.

    ``base_url`` ends where ``/chat/completions`` begins. ``models`` maps a role (``router``,
    ``worker``) to a model's name; a role that is not in it uses ``model``. Without ``api_key`` a
    placeholder is sent, as local servers like it.
    """

    base_url: str
    model: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    api_key: Secret | None = None
    bounds: Bounds = field(default_factory=Bounds)
    prices: PriceList = PRICE_LIST

    @property
    def id(self) -> str:
        """Name the endpoint by address and key: with another key it is another one."""
        key = self.api_key.reveal() if self.api_key else ""
        return hashlib.sha256(f"{self.base_url}\0{key}".encode()).hexdigest()[:16]

    def model_for(self, role: str) -> str:
        """Return the model of a role.

        Raises:
            ModelRequestError: no model is configured for it.
        """
        name = self.models.get(role) or self.model
        if not name:
            reason = f"no model is configured for the role {role}"
            raise ModelRequestError(reason)
        return name

    def is_loopback(self) -> bool:
        """Say whether the endpoint is on this machine, where no proxy stands between."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"
