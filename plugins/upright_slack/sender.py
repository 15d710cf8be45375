"""Sending: a message becomes visible once.

Slack has no idempotency keys, so each message carries the effect's key as metadata, which nobody
sees; whenever an earlier try may have worked we look for it first (B15.2).

Source: docs.slack.dev, ``chat.postMessage`` and "Message metadata".
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any, Final

from upright.api import (
    ConnectorAuthFailedError,
    ConnectorContext,
    ConnectorError,
    ConnectorNotReadyError,
    Destination,
    Effect,
    PermanentSendError,
    Receipt,
    RetryableSendError,
    UnknownSendError,
)
from upright.kit.bucket import Buckets
from upright.kit.calls import Answer, LostError, NotSentError
from upright.kit.dialects import mrkdwn
from upright.kit.limits import LIMITS
from upright.kit.splitting import split
from upright_slack.client import ILL, SIGNED_OUT, Shape, SlackClient, error_of, pause_s
from upright_slack.translate import Translator

MARK: Final = "upright_effect"
MAX_CHARS: Final = LIMITS["slack.text"].whole
MAX_PARTS: Final = 10
MAX_WAIT_S: Final = 10.0
MAX_LOOKED_AT: Final = 2_000

Found = dict[int, str]


class Sender:
    """Sends for one source; keeps silent while a rate limit asks for it."""

    def __init__(
        self, client: SlackClient, translator: Translator, context: ConnectorContext
    ) -> None:
        self._client = client
        self._translator = translator
        self._context = context
        self._buckets = Buckets(context.now, per_s=LIMITS["slack.rate"].value, burst=1)
        self._silent_until: datetime | None = None

    async def send(self, effect: Effect) -> Receipt:
        """Post what is not there yet of an effect's messages.

        Raises:
            RetryableSendError: nothing became visible in this try.
            PermanentSendError: the channel is gone, or refuses the text.
            UnknownSendError: it may have become visible, and looking did not settle it.
            ConnectorAuthFailedError: the token is refused.
        """
        channel, root = _place(effect.destination)
        parts = _parts(effect.text)
        key = hashlib.sha256(effect.idempotency_key.encode()).hexdigest()[:40]
        self._keep_silence()
        there = await self._look_first(channel, root, key) if effect.tries else Found()
        sent = list[str]()
        for number, part in enumerate(parts, start=1):
            payload = {"key": key, "part": number, "parts": len(parts)}
            sent.append(there.get(number) or await self._post(channel, root, part, payload))
        self._translator.take_part(channel, root or sent[0])
        return Receipt(
            provider_id=",".join(f"{channel}:{ts}" for ts in sent),
            url=self._translator.me.link(channel, sent[0], root),
            found=len(there) >= len(parts),
        )

    async def _post(self, channel: str, root: str, text: str, payload: Shape) -> str:
        await self._wait(channel)
        body: dict[str, Any] = {
            "channel": channel,
            "text": text,
            "mrkdwn": True,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": MARK, "event_payload": payload},
        }
        if root:
            body["thread_ts"] = root
        try:
            answer = await self._client.calls.call("POST", "/chat.postMessage", body=body)
        except NotSentError as unsent:
            raise RetryableSendError(str(unsent)) from unsent
        except LostError as lost:
            return await self._look_after(channel, root, payload, str(lost))
        error, ts = error_of(answer), answer.text("ts")
        if not error and ts:
            return ts
        if answer.status < 500 and error not in ILL and answer.value:
            raise self._refusal(answer)
        return await self._look_after(channel, root, payload, error or "Unreadable answer")

    async def _look_first(self, channel: str, root: str, key: str) -> Found:
        try:
            return await self._look(channel, root, key)
        except ConnectorNotReadyError as error:
            # Nothing was sent in this try, and the next one looks again.
            reason = f"Could not look for an earlier try: {error.reason}"
            raise RetryableSendError(reason, after_s=error.retry_after_s) from error

    async def _look_after(self, channel: str, root: str, payload: Shape, why: str) -> str:
        try:
            there = await self._look(channel, root, str(payload["key"]))
        except ConnectorNotReadyError as error:
            reason = f"{why}; then looking failed, too: {error.reason}"
            raise UnknownSendError(reason) from error
        if ts := there.get(int(payload["part"])):
            return ts
        # It is not there now; Slack may still be at it.
        reason = f"{why}; it is not among the messages (yet)"
        raise UnknownSendError(reason)

    async def _look(self, channel: str, root: str, key: str) -> Found:
        """Return the parts of an effect that are there already, by number."""
        query = {"channel": channel, "include_all_metadata": "true"}
        method = "conversations.replies" if root else "conversations.history"
        listed = self._client.pages(method, "messages", **query, **({"ts": root} if root else {}))
        found, seen = Found(), 0
        async for shape in listed:
            self._collect(shape, key, found)
            seen += 1
            if not root and seen >= MAX_LOOKED_AT:
                break
        return found

    def _collect(self, shape: Shape, key: str, found: Found) -> None:
        """Keep a message when it carries the key and is ours: anybody can copy a key."""
        ours = self._translator.me.is_us(str(shape.get("user")), str(shape.get("bot_id")))
        metadata = shape.get("metadata")
        payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
        if not ours or not isinstance(payload, dict) or payload.get("key") != key:
            return
        if isinstance(payload.get("part"), int) and isinstance(shape.get("ts"), str):
            found.setdefault(payload["part"], shape["ts"])

    async def _wait(self, channel: str) -> None:
        wait_s = self._buckets.take(channel)
        if wait_s > MAX_WAIT_S:
            self._buckets.give_back(channel)
            raise RetryableSendError("The channel had many messages of ours", after_s=wait_s)
        if wait_s:
            await self._context.sleep(wait_s)

    def _keep_silence(self) -> None:
        if self._silent_until is None:
            return
        left_s = (self._silent_until - self._context.now()).total_seconds()
        if left_s > 0:
            raise RetryableSendError("A rate limit of Slack still holds", after_s=left_s)
        self._silent_until = None

    def _refusal(self, answer: Answer) -> ConnectorError:
        """Return what a refusal means; nothing became visible."""
        error, wait_s = error_of(answer), pause_s(answer)
        if wait_s is not None:
            self._silent_until = self._context.now() + timedelta(seconds=wait_s)
            return RetryableSendError("Slack limits our messages", after_s=wait_s)
        if error in SIGNED_OUT:
            return ConnectorAuthFailedError(f"chat.postMessage: {error}")
        return PermanentSendError(f"The channel is gone, or refuses it: {error}")


def _parts(text: str) -> tuple[str, ...]:
    parts = split(text, MAX_CHARS, lambda piece: len(mrkdwn(piece)))
    if not parts:
        raise PermanentSendError("An empty message can't be sent")
    if len(parts) > MAX_PARTS:
        said = f"The text has {len(text)} characters: more than {MAX_PARTS} messages hold"
        raise PermanentSendError(said)
    return tuple(mrkdwn(part) for part in parts)


def _place(destination: Destination) -> tuple[str, str]:
    parts = dict(destination.address)
    channel, root = parts.get("channel") or parts.get("room", ""), parts.get("thread_ts", "")
    if destination.kind not in {"thread", "room"} or not channel:
        said = f"No destination of Slack: {destination.kind} {parts}"
        raise PermanentSendError(said)
    return channel, root if destination.kind == "thread" else ""
