"""Sweep: what was said while nobody listened, read by the history as the events would have told it.

Slack tells neither deletions nor reactions of the past; those stay unknown. A message that was
edited meanwhile is told as it is now, and once more as edited.

Source: docs.slack.dev, ``conversations.history`` and ``conversations.replies``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from upright.api import Trigger, TriggerRejectedError
from upright.kit.payload import Json
from upright_slack.client import Shape, SlackClient
from upright_slack.text import moment, stamp
from upright_slack.translate import Translator

KINDS: Final = "public_channel,private_channel,mpim,im"
LOOK: Final = "50"
Since = Callable[[str], str]
"""Up to which ``ts`` all of a channel is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Reads the history of all channels that are heard."""

    client: SlackClient
    translator: Translator
    threads_back: timedelta

    async def channels(self) -> list[str]:
        """Return the channels that we are in, and hear."""
        listed = self.client.pages(
            "users.conversations", "channels", types=KINDS, exclude_archived="true"
        )
        found = list[str]()
        async for one in listed:
            channel = str(one.get("id") or "")
            if channel and self.translator.rules.hears(channel):
                self.translator.learn_title(channel, str(one.get("name") or ""))
                found.append(channel)
        return found

    async def newest(self, channel: str) -> str:
        """Return the ``ts`` up to which a channel is history at the very first."""
        answer = await self.client.read("conversations.history", channel=channel, limit=LOOK)
        known = [str(one.get(key) or "") for one in answer.objects("messages") for key in _STAMPS]
        edits = [_edited(one) for one in answer.objects("messages")]
        return max((*known, *edits), default="") or "0000000000.000000"

    async def missed(self, since: Since) -> AsyncIterator[tuple[str, Trigger]]:
        """Yield (ts, trigger) of all that happened since, oldest first over all channels."""
        found = list[tuple[str, Json]]()
        for channel in await self.channels():
            found += await self._of(channel, since(channel))
        for at, event in sorted(found, key=lambda one: one[0]):
            try:
                made = await self.translator.trigger(event)
            except TriggerRejectedError as error:
                extra = {"why": error.reason}
                self.translator.context.log.warning("slack.not_read", extra=extra)
                continue
            if made is not None:
                yield at, made

    async def _of(self, channel: str, since: str) -> list[tuple[str, Json]]:
        began = moment(since)
        back = stamp(began - self.threads_back) if began and began.timestamp() else since
        shapes = list[Shape]()
        listed = self.client.pages(
            "conversations.history", "messages", channel=channel, oldest=min(back, since)
        )
        async for shape in listed:
            shapes.append(shape)
            if str(shape.get("latest_reply") or "") > since:
                shapes += await self._replies(channel, str(shape.get("ts") or ""), since)
        shapes.sort(key=lambda one: str(one.get("ts") or ""))
        return [one for shape in self._ours(shapes) for one in _events(channel, shape, since)]

    async def _replies(self, channel: str, root: str, since: str) -> list[Shape]:
        listed = self.client.pages(
            "conversations.replies", "messages", channel=channel, ts=root, oldest=since
        )
        return [one async for one in listed if one.get("ts") != root]

    def _ours(self, shapes: list[Shape]) -> list[Shape]:
        """Leave out what was said before we came."""
        me = self.translator.me.user
        joins = [
            n
            for n, one in enumerate(shapes)
            if one.get("user") == me and one.get("subtype") in {"channel_join", "group_join"}
        ]
        return shapes[joins[-1] :] if joins else shapes


_STAMPS: Final = ("ts", "latest_reply")


def _edited(shape: Shape) -> str:
    edited = shape.get("edited")
    return str(edited.get("ts") or "") if isinstance(edited, dict) else ""


def _events(channel: str, shape: Shape, since: str) -> list[tuple[str, Json]]:
    """Return the events that would have told a message, and its edit, since then."""
    where: dict[str, Any] = {"type": "message", "channel": channel}
    ts, edited = str(shape.get("ts") or ""), _edited(shape)
    told = list[tuple[str, Json]]()
    if ts > since:
        told.append((ts, Json({**shape, **where})))
    if edited > since:
        change = {"subtype": "message_changed", "message": shape, "event_ts": edited}
        told.append((edited, Json({**where, **change})))
    return told
