"""Verify: a request must show that it knows the source's secret; compared in constant time.

Sources: docs.gitlab.com, "Webhooks"; buildkite.com/docs, "Webhooks"; RFC 6750.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from upright.api import InboundRequest, Secret, TriggerRejectedError
from upright_ci.settings import CiSettings, Provider, Verify

WINDOW_S: Final = 300.0  # how far Buildkite's time stamp may be from ours
_USUAL: Final[Mapping[Provider, tuple[Verify, str]]] = {
    Provider.GITLAB: (Verify.HEADER, "x-gitlab-token"),
    Provider.JUNIT: (Verify.BEARER, ""),
    Provider.BUILDBOT: (Verify.BEARER, ""),
    Provider.JENKINS: (Verify.BEARER, ""),
    Provider.BUILDKITE: (Verify.BUILDKITE, ""),
    Provider.GENERIC: (Verify.BEARER, ""),
}


def verify(request: InboundRequest, secret: Secret, settings: CiSettings, now: datetime) -> None:
    """Refuse a request that does not know the secret.

    Raises:
        TriggerRejectedError: 401; what was shown is not repeated.
    """
    how, header = _USUAL[settings.provider]
    if settings.verify is not None:
        how, header = settings.verify, settings.header.lower()
    headers, key = request.headers, secret.reveal()
    shown, good = headers.get(header, ""), False
    match how:
        case Verify.BEARER:
            scheme, _, shown = headers.get("authorization", "").partition(" ")
            good = scheme.lower() == "bearer" and _same(shown, key)
        case Verify.HEADER:
            good = _same(shown, key)
        case Verify.HMAC:
            good = _same(shown.strip().removeprefix("sha256="), _signature(key, request.body))
        case Verify.BUILDKITE:
            shown = headers.get("x-buildkite-signature", "") or headers.get("x-buildkite-token", "")
            good = _buildkite(request, key, now)
    if not good:
        what = "is wrong" if shown else "is missing"
        reason = f"The secret or the signature {what}"
        raise TriggerRejectedError(reason, status=401, code="trigger.signature")


def _same(shown: str, wanted: str) -> bool:
    # Bytes, because compare_digest refuses a text that is not ASCII by an exception of its own.
    return hmac.compare_digest(shown.strip().encode("utf-8", "replace"), wanted.encode())


def _signature(key: str, body: bytes) -> str:
    return hmac.digest(key.encode(), body, hashlib.sha256).hex()


def _buildkite(request: InboundRequest, key: str, now: datetime) -> bool:
    """Check ``timestamp=…,signature=…`` over ``timestamp.body``; else the plain token."""
    signed = request.headers.get("x-buildkite-signature", "")
    if not signed:
        return _same(request.headers.get("x-buildkite-token", ""), key)
    parts = dict(part.strip().partition("=")[::2] for part in signed.split(","))
    stamp = parts.get("timestamp", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12):
        return False
    good = _same(parts.get("signature", ""), _signature(key, stamp.encode() + b"." + request.body))
    return good and abs(now.timestamp() - int(stamp)) <= WINDOW_S
