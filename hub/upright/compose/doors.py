"""Doors: how people come in, made of ``[auth]`` and the hub's public address."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from upright.api import Secret
from upright.engine.rate import Rate
from upright.engine.units import Units
from upright.settings.auth import AuthSection
from upright.settings.shape import Settings
from upright.store import persons
from upright.web.doors import SIGN_INS_PER_MINUTE, Doors, Terms
from upright.web.fetch import Fetching
from upright.web.oidc import Client, Provider

RETURNS_TO: Final = "/sign-in/return"
WINDOW_S: Final = 60.0


def doors(settings: Settings, units: Units, *, port: int, secret: Secret | None) -> Doors:
    """Make the parts; *secret* is this hub's at the provider, *port* the one it listens on."""
    auth, configured = settings.auth, settings.identities()
    origin = _origin(settings.hub.public_url)
    here = origin or f"http://localhost:{port}"
    return Doors(
        units=units,
        terms=terms(auth, origin),
        random_bytes=secrets.token_bytes,
        failed=Rate(clock=units.clock, tries=auth.tries_per_minute, window_s=WINDOW_S),
        entered=Rate(clock=units.clock, tries=SIGN_INS_PER_MINUTE, window_s=WINDOW_S),
        provider=_provider(auth, units, f"{here}{RETURNS_TO}", secret) if auth.issuer else None,
        people=lambda c: persons.known(c, configured),
    )


def terms(auth: AuthSection, origin: str) -> Terms:
    """Return the bounds as the web uses them."""
    return Terms(
        idle_ms=1000 * auth.idle_s,
        life_ms=1000 * auth.session_s,
        link_ms=1000 * auth.link_s,
        token_days=auth.token_days,
        admission=auth.admission(),
        origin=origin,
        proxies=auth.trusted_proxies,
    )


def _origin(public_url: str) -> str:
    address = urlsplit(public_url)
    return f"{address.scheme}://{address.netloc}" if public_url else ""


def _provider(auth: AuthSection, units: Units, returns_to: str, secret: Secret | None) -> Provider:
    client = Client(
        issuer=auth.issuer,
        client_id=auth.client_id,
        secret=secret,
        returns_to=returns_to,
        skew_s=auth.clock_skew_s,
    )
    return Provider(client, units.clock, Fetching(base=auth.issuer))
