"""Verify: who sent a request, over its raw bytes, in constant time, within a window of time.

Sources: docs.github.com, "Validating webhook deliveries"; docs.slack.dev, "Verifying requests from
Slack"; docs.stripe.com, "Verify webhook signatures manually"; standardwebhooks.com, specification.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from upright.api import InboundRequest, Secret, TriggerRejectedError
from upright_webhook.settings import Scheme, WebhookSettings

MAX_SIGNATURES: Final = 16
SIGNATURE: Final = "trigger.signature"


def verify(
    request: InboundRequest, settings: WebhookSettings, secret: Secret, now: datetime
) -> None:
    """Refuse a request that its sender did not make, or made too long ago.

    Raises:
        TriggerRejectedError: 401, whatever is wrong; the reason names it, never the secret.
    """
    key, headers, body = secret.reveal().encode(), request.headers, request.body
    match settings.scheme:
        case Scheme.GITHUB:
            claimed = [headers.get("x-hub-signature-256", "").removeprefix("sha256=")]
            _compare(claimed, _hex(key, body))
        case Scheme.SLACK:
            sent = headers.get("x-slack-request-timestamp", "")
            claimed = [headers.get("x-slack-signature", "").removeprefix("v0=")]
            _compare(claimed, _hex(key, b"v0:" + _ascii(sent) + b":" + body))
            _in_window(sent, settings.window_s, now)
        case Scheme.STRIPE:
            parts = [part.strip() for part in headers.get("stripe-signature", "").split(",")]
            sent = next(_of(parts, "t="), "")
            _compare(_of(parts, "v1="), _hex(key, _ascii(sent) + b"." + body))
            _in_window(sent, settings.window_s, now)
        case Scheme.STANDARD:
            _standard(request, settings, key, now)
        case Scheme.BEARER:
            _bare(headers.get("authorization", ""), b"bearer ", key)
        case Scheme.BASIC:
            given = base64.b64encode(settings.user.encode() + b":" + key)
            _bare(headers.get("authorization", ""), b"basic ", given)
        case Scheme.HEADER:
            _compare([headers.get(settings.header.strip().lower(), "")], key)


def sign(
    scheme: Scheme, secret: str, body: bytes, *, at: int, id_: str = "msg_1"
) -> dict[str, str]:
    """Return the headers that a sender of a signing scheme adds; for tests and for people.

    *at* is epoch seconds. Raises ValueError for a scheme that signs nothing.
    """
    key, sent = secret.encode(), str(at).encode()
    match scheme:
        case Scheme.GITHUB:
            return {"x-hub-signature-256": "sha256=" + _hex(key, body).decode()}
        case Scheme.SLACK:
            signature = "v0=" + _hex(key, b"v0:" + sent + b":" + body).decode()
            return {"x-slack-request-timestamp": str(at), "x-slack-signature": signature}
        case Scheme.STRIPE:
            return {"stripe-signature": f"t={at},v1={_hex(key, sent + b'.' + body).decode()}"}
        case Scheme.STANDARD:
            told = _standard_signature(key, id_.encode(), sent, body).decode()
            stamped = {"webhook-id": id_, "webhook-timestamp": str(at)}
            return {**stamped, "webhook-signature": f"v1,{told}"}
        case _:
            problem = f"{scheme} signs nothing"
            raise ValueError(problem)


def _standard(
    request: InboundRequest, settings: WebhookSettings, key: bytes, now: datetime
) -> None:
    headers = request.headers
    sent, native = headers.get("webhook-timestamp", ""), headers.get("webhook-id", "")
    wanted = _standard_signature(key, native.encode("utf-8", "replace"), _ascii(sent), request.body)
    _compare(_of(headers.get("webhook-signature", "").split(" "), "v1,"), wanted)
    _in_window(sent, settings.window_s, now)


def _standard_signature(key: bytes, native: bytes, sent: bytes, body: bytes) -> bytes:
    raw = key.removeprefix(b"whsec_")
    try:
        raw = base64.b64decode(raw, validate=True)
    except binascii.Error:
        raw = key  # some give the secret as it is
    signed = hmac.digest(raw, native + b"." + sent + b"." + body, hashlib.sha256)
    return base64.b64encode(signed)


def _hex(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, hashlib.sha256).hex().encode()


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


def _of(parts: Iterable[str], prefix: str) -> Iterator[str]:
    return (part.removeprefix(prefix) for part in parts if part.startswith(prefix))


def _bare(claimed: str, prefix: bytes, wanted: bytes) -> None:
    given = claimed.strip().encode("utf-8", "replace")
    if given[: len(prefix)].lower() != prefix:
        raise _refused("The authorization is missing, or of another sort")
    _compare([given[len(prefix) :].strip().decode("utf-8", "replace")], wanted)


def _compare(claimed: Iterable[str], wanted: bytes) -> None:
    """Compare bytes: compare_digest refuses a text that is not ASCII by an error of its own."""
    given = [each.strip().encode("utf-8", "replace") for each in claimed][:MAX_SIGNATURES]
    if not any(given):
        raise _refused("The signature is missing")
    if not any(hmac.compare_digest(each, wanted) for each in given):
        raise _refused("The signature is wrong")


def _in_window(sent: str, window_s: float, now: datetime) -> None:
    """Refuse what is too old, or from the future. After the signature, which covers the time."""
    if not (sent.isascii() and sent.isdigit() and len(sent) < 12):
        raise _refused("The time of the request is missing")
    if abs(now.timestamp() - int(sent)) > window_s:
        raise _refused("The request is too old, or the clocks are apart")


def _refused(reason: str) -> TriggerRejectedError:
    return TriggerRejectedError(reason, status=401, code=SIGNATURE)
