"""Failures: what an endpoint's refusal means, in the three kinds that callers tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from upright.engine.ports import (
    ModelAuthError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
)

AUTH_STATUSES: Final = frozenset({401, 402, 403})
LATER_STATUSES: Final = frozenset({408, 409, 425, 429})
BILLING_CODES: Final = frozenset(
    {
        "access_terminated",
        "account_deactivated",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_authentication",
    }
)
REQUEST_CODES: Final = frozenset(
    {
        "context_length_exceeded",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
    }
)
MAX_REASON_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the endpoint answered. ``status`` is None for an error told inside a stream."""

    status: int | None
    codes: frozenset[str]
    reason: str
    retry_after_s: float | None = None


def refusal_error(refusal: Refusal) -> ModelError:
    """Return the error that a refusal is; the codes of a bill outrank the status (429 for it)."""
    said = refusal.reason.strip()[:MAX_REASON_CHARS] or "no reason given"
    reason = said if refusal.status is None else f"HTTP {refusal.status}: {said}"
    status = refusal.status or 0
    if refusal.codes & BILLING_CODES or status in AUTH_STATUSES:
        return ModelAuthError(reason)
    if status in LATER_STATUSES or status >= 500:
        return ModelUnavailableError(reason, retry_after_s=refusal.retry_after_s)
    if status >= 400 or refusal.codes & REQUEST_CODES:
        return ModelRequestError(reason)
    return ModelUnavailableError(reason, retry_after_s=refusal.retry_after_s)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read ``Retry-After`` (RFC 9110 10.2.3: seconds or a date), or OpenAI's in milliseconds."""
    if (millis := _number(headers.get("retry-after-ms", ""))) is not None:
        return millis / 1_000
    text = headers.get("retry-after", "")
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        at = parsedate_to_datetime(text)
        return max(0.0, (at - now).total_seconds())
    except (TypeError, ValueError):  # no date, or one without a zone
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
