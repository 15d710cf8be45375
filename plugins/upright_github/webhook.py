"""Webhooks: the signature over the raw bytes, then the content type, then the JSON.

Source: docs.github.com, "Validating webhook deliveries" and "Webhook events and payloads".
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from upright.api import InboundRequest, Secret, TriggerRejectedError
from upright.kit.payload import CODE, Json

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FORM_FIELDS: Final = 8  # GitHub sends one, "payload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One verified delivery: its GUID, the event's name, its payload."""

    guid: str
    event: str
    payload: Json
    raw: bytes
    raw_type: str


def sign(secret: bytes, body: bytes) -> str:
    """Return the value of ``X-Hub-Signature-256`` for a body."""
    return "sha256=" + hmac.digest(secret, body, hashlib.sha256).hex()


def open_delivery(request: InboundRequest, secret: Secret, *, max_body_bytes: int) -> Delivery:
    """Verify a request and decode it.

    Raises:
        TriggerRejectedError: 413 too large, 415 neither JSON nor a form, 401 no or a wrong
            signature, 400 a header is missing or the body can't be read.
    """
    body, headers = request.body, request.headers
    if len(body) > max_body_bytes:
        raise _refused("The body is over the cap of this source", 413, "trigger.too_large")
    raw_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw_type not in {JSON_TYPE, FORM_TYPE}:
        raise _refused("The content type is neither JSON nor a form", 415, "trigger.content_type")
    _verify(headers.get("x-hub-signature-256", ""), secret, body)
    guid = headers.get("x-github-delivery", "").strip()
    event = headers.get("x-github-event", "").strip()
    if not guid or not event:
        raise _refused("X-GitHub-Delivery and X-GitHub-Event must be there", 400, CODE)
    text = _form_payload(body) if raw_type == FORM_TYPE else body
    return Delivery(guid=guid, event=event, payload=_decode(text), raw=body, raw_type=raw_type)


def _refused(reason: str, status: int, code: str) -> TriggerRejectedError:
    return TriggerRejectedError(reason, status=status, code=code)


def _verify(claimed: str, secret: Secret, body: bytes) -> None:
    wanted = sign(secret.reveal().encode(), body)
    # Bytes, because compare_digest refuses a text that is not ASCII by an exception of its own.
    if not hmac.compare_digest(wanted.encode(), claimed.strip().encode("utf-8", "replace")):
        reason = "The signature is wrong" if claimed else "The signature is missing"
        raise _refused(reason, 401, "trigger.signature")


def _form_payload(body: bytes) -> str:
    try:
        # Without errors="strict" a broken byte would silently become another character.
        fields = parse_qs(
            body.decode("ascii"),
            strict_parsing=True,
            errors="strict",
            max_num_fields=_MAX_FORM_FIELDS,
        )
        (payload,) = fields["payload"]
    except (ValueError, KeyError) as error:
        raise _refused("The form has no readable field payload", 400, CODE) from error
    return payload


def _decode(text: str | bytes) -> Json:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused("The body is not JSON", 400, CODE) from error
    if not isinstance(value, dict):
        raise _refused("The body is not a JSON object", 400, CODE)
    return Json(value)
