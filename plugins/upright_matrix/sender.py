"""Sending: a message becomes visible once.

The server knows a repeated transaction id for a day at the least, so a try that got no answer is
made again with the same one. Later tries look first: each message carries the effect's key in its
content, where no client shows it (B15.2).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorError,
    ConnectorNotReadyError,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
)
from upright.kit.bucket import Buckets
from upright.kit.calls import Answer, LostError, NotSentError
from upright.kit.dialects import matrix_html, plain
from upright.kit.limits import LIMITS
from upright.kit.splitting import split, utf8_bytes
from upright_matrix.client import SIGNED_OUT, MatrixClient, path, pause_s, reason
from upright_matrix.past import Past
from upright_matrix.translate import permalink

MARK: Final = "dev.upright.effect"
MAX_PARTS: Final = 10
MAX_CONTENT_BYTES: Final = LIMITS["matrix.event"].whole - 8_192  # the server adds to it
MAX_WAIT_S: Final = 10.0
_PAGE: Final = "100"
_MAX_PAGES: Final = 10
_AGAIN: Final = 2  # tries with one transaction id, when no answer comes

Content = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a message goes: a room, and there the thread of *root*, as an answer to *event*."""

    room: str
    root: str = ""
    event: str = ""


class Sender:
    """Sends for one source."""

    def __init__(
        self, client: MatrixClient, context: ConnectorContext, past: Past, *, me: str, kind: str
    ) -> None:
        self._client = client
        self._context = context
        self._past = past
        self._me = me
        self._kind = kind
        self._buckets = Buckets(
            context.now, per_s=LIMITS["matrix.rate"].value, burst=LIMITS["matrix.burst"].value
        )

    async def send(self, effect: Effect) -> Receipt:
        """Send what is not there yet of an effect's messages.

        Raises:
            RetryableSendError: another try makes it visible once.
            PermanentSendError: the room is gone, or refuses it.
            ConnectorAuthFailedError: the token is refused.
        """
        place, parts = _place(effect), self._parts(effect.text)
        key = hashlib.sha256(effect.idempotency_key.encode()).hexdigest()[:40]
        there = await self._look(place.room, key) if effect.tries else {}
        sent = list[str]()
        for number, content in enumerate(parts, start=1):
            self._place(content, place, sent[-1] if sent else "")
            content[MARK] = {"key": key, "part": number, "parts": len(parts)}
            found = there.get(number)
            sent.append(found or await self._put(place.room, f"upright.{key}.{number}", content))
        if place.root:
            self._past.take_part(place.root)
        else:
            self._past.take_part(sent[0])
        return Receipt(
            provider_id=",".join(sent),
            url=permalink(place.room, sent[0]),
            found=len(there) >= len(parts),
        )

    def _parts(self, text: str) -> list[Content]:
        def size(piece: str) -> int:
            return utf8_bytes(json.dumps(self._content(piece), ensure_ascii=False))

        parts = split(text, MAX_CONTENT_BYTES, size)
        if not parts:
            raise PermanentSendError("An empty message can't be sent")
        if len(parts) > MAX_PARTS:
            said = f"The text has {len(text)} characters: more than {MAX_PARTS} messages hold"
            raise PermanentSendError(said)
        return [self._content(part) for part in parts]

    def _content(self, piece: str) -> Content:
        return {
            "msgtype": self._kind,
            "body": plain(piece),
            "format": "org.matrix.custom.html",
            "formatted_body": matrix_html(piece),
            "m.mentions": {},
        }

    @staticmethod
    def _place(content: Content, place: Place, before: str) -> None:
        """Put a message into its thread; a later part falls back to the one before it."""
        if place.root:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": place.root,
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": before or place.event or place.root},
            }

    async def _put(self, room: str, transaction: str, content: Content) -> str:
        await self._wait(room)
        at = path("rooms", room, "send", "m.room.message", transaction)
        said = ""
        for _ in range(_AGAIN):
            try:
                answer = await self._client.calls.call("PUT", at, body=content)
            except NotSentError as error:
                raise RetryableSendError(str(error)) from error
            except LostError as error:
                said = str(error)
                continue
            if event := answer.text("event_id"):
                return event
            said = reason(answer)
            if 400 <= answer.status < 500:
                raise _refusal(answer)
        raise RetryableSendError(said)

    async def _wait(self, room: str) -> None:
        wait_s = self._buckets.take(room)
        if wait_s > MAX_WAIT_S:
            self._buckets.give_back(room)
            raise RetryableSendError("The room had many messages of ours", after_s=wait_s)
        if wait_s:
            await self._context.sleep(wait_s)

    async def _look(self, room: str, key: str) -> dict[int, str]:
        """Return the parts of an effect that are there already, by number."""
        found: dict[int, str] = {}
        query = {"dir": "b", "limit": _PAGE, "filter": json.dumps({"senders": [self._me]})}
        for _ in range(_MAX_PAGES):
            try:
                answer = await self._client.get(path("rooms", room, "messages"), query)
            except ConnectorNotReadyError as error:
                # Nothing was sent in this try, and the next one looks again.
                said = f"Could not look for an earlier try: {error.reason}"
                raise RetryableSendError(said, after_s=error.retry_after_s) from error
            if answer.status != 200:
                raise _refusal(answer)
            for event in answer.objects("chunk"):
                self._collect(event, key, found)
            if not answer.text("end"):
                break
            query["from"] = answer.text("end")
        return found

    def _collect(self, event: Mapping[str, Any], key: str, found: dict[int, str]) -> None:
        """Keep an event when it carries the key and is ours: anybody can copy a key."""
        content = event.get("content")
        mark = content.get(MARK) if isinstance(content, dict) else None
        if event.get("sender") != self._me or not isinstance(mark, dict) or mark.get("key") != key:
            return
        if isinstance(mark.get("part"), int) and isinstance(event.get("event_id"), str):
            found.setdefault(mark["part"], event["event_id"])


def _place(effect: Effect) -> Place:
    parts = dict(effect.destination.address)
    if effect.destination.kind not in {"thread", "room"} or not parts.get("room"):
        said = f"No destination of Matrix: {effect.destination.kind} {parts}"
        raise PermanentSendError(said)
    if effect.destination.kind == "room":
        return Place(room=parts["room"])
    return Place(room=parts["room"], root=parts.get("root", ""), event=parts.get("event", ""))


def _refusal(answer: Answer) -> ConnectorError:
    """Return what a refusal means; nothing became visible."""
    if answer.status == 401 or answer.text("errcode") in SIGNED_OUT:
        return ConnectorAuthFailedError(reason(answer))
    wait_s = pause_s(answer)
    if wait_s is not None:
        return RetryableSendError(reason(answer), after_s=wait_s)
    if answer.status >= 500:
        return RetryableSendError(reason(answer))
    return PermanentSendError(f"The room is gone, or refuses it: {reason(answer)}")
