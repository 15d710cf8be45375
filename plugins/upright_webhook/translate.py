"""Translate: one verified request becomes a trigger, as the settings map it."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs

from upright.api import (
    Actor,
    ActorKind,
    Channel,
    Code,
    Content,
    Context,
    InboundRequest,
    Trigger,
    TriggerRejectedError,
)
from upright_webhook.settings import WebhookSettings
from upright_webhook.template import MAX_CHARS, Source

PREFIX: Final = "webhook."
FORM: Final = "application/x-www-form-urlencoded"
MAX_KEY_CHARS: Final = 200
_NOT_KIND: Final = re.compile(r"[^a-z0-9_.-]+")
_FALSE: Final = frozenset({"", "0", "false", "no", "null"})
_OWN_IDS: Final = ("x-github-delivery", "webhook-id", "x-request-id", "idempotency-key")


def decode(request: InboundRequest) -> Source:
    """Decode a body: JSON, a form (also one with its JSON in ``payload``), or text.

    Raises:
        TriggerRejectedError: 400, it says that it is JSON or a form, and is none.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        body = _decoded(request.body, kind)
    except (ValueError, RecursionError) as error:
        raise TriggerRejectedError("The body is not what its type says") from error
    return Source(body, request.headers)


def _decoded(body: bytes, kind: str) -> object:
    if kind == FORM:
        return _form(body)
    if kind and not kind.endswith("json"):
        return body.decode("utf-8", "replace")
    decoded: object = json.loads(body)
    if b"\\ud" in body.lower():  # half of a character can't be stored
        json.dumps(decoded, ensure_ascii=False).encode()
    return decoded


def challenge(source: Source, settings: WebhookSettings) -> str:
    """Return the challenge in a request; empty when it is none."""
    return source.fill(settings.challenge)


def translate(
    request: InboundRequest, source: Source, settings: WebhookSettings, name: str
) -> Trigger | None:
    """Make the trigger of a request; None when ``skip_unless`` is empty in it."""
    mapped, fill = settings.map, source.fill
    if mapped.skip_unless and fill(mapped.skip_unless).lower() in _FALSE:
        return None
    thread, link = fill(mapped.thread), fill(mapped.link)
    key, actor = _key(request, source, settings), fill(mapped.actor) or "webhook"
    told = [(fact, fill(template)) for fact, template in mapped.facts]
    return Trigger(
        kind=_kind(fill(mapped.kind)),
        channel=Channel.WEBHOOK,
        actor=Actor(
            id=actor[:MAX_KEY_CHARS],
            name=fill(mapped.actor_name)[:MAX_KEY_CHARS],
            kind=ActorKind.BOT if settings.bot else ActorKind.STRANGER,
        ),
        content=Content(
            title=fill(mapped.title)[:500] or f"Webhook of {name}",
            text=fill(mapped.text) if mapped.text else source.find(".")[:MAX_CHARS],
            urgent=fill(mapped.urgent).lower() not in _FALSE,
        ),
        context=Context(
            thread=f"webhook:{thread[:MAX_KEY_CHARS] or name}",
            links=(link,) if link.startswith(("https://", "http://")) else (),
            code=_code(source, settings),
            facts=tuple((fact, value) for fact, value in [("native_id", key), *told] if value),
        ),
        dedupe=(key,),
        occurred_at=_time(fill(mapped.occurred_at)),
        raw=request.body,
        raw_type=request.headers.get("content-type", "") or "application/json",
    )


def _kind(said: str) -> str:
    """Return a kind that can't be taken for another connector's, or for the hub's own."""
    kind = _NOT_KIND.sub("-", said.lower()).strip(".-")[:80]
    return kind if kind.startswith(PREFIX) else f"{PREFIX}{kind or 'received'}"


def _key(request: InboundRequest, source: Source, settings: WebhookSettings) -> str:
    for template in settings.dedupe:
        if key := source.fill(template):
            return (
                f"id:{hashlib.sha256(key.encode()).hexdigest()}" if len(key) > 200 else f"id:{key}"
            )
    for header in () if settings.dedupe else _OWN_IDS:
        if key := request.headers.get(header, "").strip():
            return f"{header}:{key[:MAX_KEY_CHARS]}"
    return f"sha256:{hashlib.sha256(request.body).hexdigest()}"


def _code(source: Source, settings: WebhookSettings) -> Code | None:
    mapped = settings.map
    repository = source.fill(mapped.repository)
    if not repository:
        return None
    sha, branch = source.fill(mapped.sha), source.fill(mapped.branch)
    return Code(repository=repository[:MAX_KEY_CHARS], sha=sha[:64], branch=branch[:MAX_KEY_CHARS])


def _time(text: str) -> datetime | None:
    """Read ISO 8601, or epoch seconds or milliseconds; what is neither says no time."""
    try:
        if text.replace(".", "", 1).isdigit():
            value = float(text)
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, tz=UTC)
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _form(body: bytes) -> dict[str, Any]:
    fields = parse_qs(body.decode(), strict_parsing=True, errors="strict", max_num_fields=500)
    plain: dict[str, Any] = {key: values[-1] for key, values in fields.items()}
    payload = plain.get("payload", "")
    if isinstance(payload, str) and payload.startswith("{"):
        plain = {**plain, **json.loads(payload)}
    return plain
