"""Webhooks: the v0 signature over the raw bytes, its five minutes, then the JSON.

Source: docs.slack.dev, "Verifying requests from Slack" and "Events API".
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime
from typing import Any, Final

from upright.api import InboundRequest, Secret, TriggerRejectedError
from upright.kit.limits import LIMITS
from upright.kit.payload import CODE, Json

MAX_BODY_BYTES: Final = LIMITS["slack.body"].whole
WINDOW_S: Final = LIMITS["slack.window"].value
FORM_TYPE: Final = "application/x-www-form-urlencoded"


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the value of ``X-Slack-Signature`` for a body."""
    signed = b":".join((b"v0", timestamp.encode("utf-8", "replace"), body))
    return "v0=" + hmac.digest(secret, signed, hashlib.sha256).hex()


def open_callback(request: InboundRequest, secret: Secret, now: datetime) -> Json | None:
    """Verify a request and decode it; None for a form (a command, a button), which tells nothing.

    Raises:
        TriggerRejectedError: 413 too large, 401 no or a wrong or an old signature, 415 neither
            JSON nor a form, 400 the body can't be read.
    """
    if len(request.body) > MAX_BODY_BYTES:
        raise _refused("The body is over the cap of this source", 413, "trigger.too_large")
    _verify(request, secret, now)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == FORM_TYPE:
        return None
    if kind != "application/json":
        raise _refused("The content type is neither JSON nor a form", 415, "trigger.content_type")
    try:
        value: Any = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise _refused("The body is not JSON", 400, CODE) from error
    if not isinstance(value, dict):
        raise _refused("The body is not a JSON object", 400, CODE)
    return Json(value)


def _verify(request: InboundRequest, secret: Secret, now: datetime) -> None:
    timestamp = request.headers.get("x-slack-request-timestamp", "").strip()
    claimed = request.headers.get("x-slack-signature", "").strip()
    wanted = sign(secret.reveal().encode(), timestamp, request.body)
    # Bytes, because compare_digest refuses a text that is not ASCII by an exception of its own.
    if not hmac.compare_digest(wanted.encode(), claimed.encode("utf-8", "replace")):
        reason = "The signature is wrong" if claimed else "The signature is missing"
        raise _refused(reason, 401, "trigger.signature")
    plain = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12
    if not plain or abs(now.timestamp() - int(timestamp)) > WINDOW_S:
        raise _refused("The signature is older than five minutes", 401, "trigger.signature")


def _refused(reason: str, status: int, code: str) -> TriggerRejectedError:
    return TriggerRejectedError(reason, status=status, code=code)
