"""World: a workspace: users, channels, messages, as Slack shows them by its API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

TEAM: Final = "T0SANDBOX1"
BOT_USER: Final = "U0HELPER01"
BOT: Final = "B0HELPER01"
APP: Final = "A0SANDBOX1"

Shape = dict[str, Any]


class NotThereError(Exception):
    """Something that a call names is not there; the message is Slack's word for it."""


@dataclass(slots=True)
class Channel:
    """One channel; ``messages`` are Slack's shapes, those of threads among them, by ``ts``."""

    id: str
    name: str
    direct: bool = False
    private: bool = False
    archived: bool = False
    members: set[str] = field(default_factory=set)
    messages: dict[str, Shape] = field(default_factory=dict)

    def shape(self) -> Shape:
        """Return it as ``users.conversations`` lists it."""
        return {
            "id": self.id,
            "name": self.name,
            "is_im": self.direct,
            "is_private": self.private,
            "is_archived": self.archived,
            "is_member": True,
        }

    def kind(self) -> str:
        """Return the ``channel_type`` of its events."""
        return "im" if self.direct else "group" if self.private else "channel"


class World:
    """One workspace; every change returns what an event would tell of it."""

    def __init__(self, now: Callable[[], datetime], *, team: str = TEAM, bot_user: str = BOT_USER):
        self.now = now
        self.team = team
        self.bot_user = bot_user
        self.bot = BOT
        self.channels: dict[str, Channel] = {}
        self._last_ts = (0, 0)

    def new_ts(self) -> str:
        """Return a ``ts`` greater than all before, whatever the clock does."""
        seconds, number = self._last_ts
        now = int(self.now().timestamp())
        self._last_ts = (now, 100) if now > seconds else (seconds, number + 100)
        return f"{self._last_ts[0]}.{self._last_ts[1]:06d}"

    def add_channel(
        self, channel: str, name: str, *, direct: bool = False, member: bool = True
    ) -> Channel:
        """Make a channel; the bot is in it unless *member* says no."""
        made = Channel(channel, name, direct=direct)
        self.channels[channel] = made
        if member:
            made.members.add(self.bot_user)
        return made

    def channel(self, channel: str) -> Channel:
        """Return a channel that the bot may see."""
        found = self.channels.get(channel)
        if found is None:
            raise NotThereError("channel_not_found")
        return found

    def message(self, channel: str, ts: str) -> Shape:
        """Return a message."""
        found = self.channel(channel).messages.get(ts)
        if found is None:
            raise NotThereError("message_not_found")
        return found

    # ---------------------------------------------------------------- what people and bots do
    def post(
        self, channel: str, user: str, text: str, *, thread_ts: str = "", **more: object
    ) -> Shape:
        """Add a message; return its event."""
        place = self.channel(channel)
        ts = self.new_ts()
        shape: Shape = {"type": "message", "user": user, "text": text, "ts": ts, "team": self.team}
        shape |= more
        if thread_ts:
            root = self.message(channel, thread_ts)
            shape |= {"thread_ts": thread_ts, "parent_user_id": root.get("user", "")}
            root["thread_ts"] = thread_ts
            root["reply_count"] = int(root.get("reply_count", 0)) + 1
            root["latest_reply"] = ts
        place.messages[ts] = shape
        return {**shape, **self._where(place), "event_ts": ts}

    def edit(self, channel: str, ts: str, text: str, *, unfurl: bool = False) -> Shape:
        """Change a message, or add a preview to it alone; return the event."""
        place, shape = self.channel(channel), self.message(channel, ts)
        previous, at = dict(shape), self.new_ts()
        if unfurl:
            shape["attachments"] = [{"from_url": text, "id": 1, "title": "A page"}]
        else:
            shape |= {"text": text, "edited": {"user": shape.get("user", ""), "ts": at}}
        return {
            "type": "message",
            "subtype": "message_changed",
            "message": dict(shape),
            "previous_message": previous,
            "hidden": True,
            "ts": at,
            "event_ts": at,
            **self._where(place),
        }

    def delete(self, channel: str, ts: str) -> Shape:
        """Delete a message; return the event."""
        place, shape, at = self.channel(channel), self.message(channel, ts), self.new_ts()
        del place.messages[ts]
        return {
            "type": "message",
            "subtype": "message_deleted",
            "deleted_ts": ts,
            "previous_message": shape,
            "hidden": True,
            "ts": at,
            "event_ts": at,
            **self._where(place),
        }

    def react(self, channel: str, ts: str, user: str, name: str, *, remove: bool = False) -> Shape:
        """Add or remove a reaction; return the event."""
        shape, at = self.message(channel, ts), self.new_ts()
        reactions = [one for one in shape.get("reactions", []) if one["name"] != name]
        shape["reactions"] = reactions if remove else [*reactions, {"name": name, "users": [user]}]
        return {
            "type": "reaction_removed" if remove else "reaction_added",
            "user": user,
            "reaction": name,
            "item": {"type": "message", "channel": channel, "ts": ts},
            "item_user": shape.get("user", ""),
            "event_ts": at,
        }

    def join(self, channel: str) -> Shape:
        """Let the bot come into a channel; return the event."""
        place = self.channel(channel)
        place.members.add(self.bot_user)
        said = f"<@{self.bot_user}> has joined the channel"
        return self.post(channel, self.bot_user, said, subtype="channel_join")

    @staticmethod
    def _where(place: Channel) -> Shape:
        return {"channel": place.id, "channel_type": place.kind()}

    # ---------------------------------------------------------------- what the API shows
    def history(self, channel: str) -> list[Shape]:
        """Return a channel's messages outside of threads, newest first."""
        said = self.channel(channel).messages.values()
        roots = [
            one
            for one in said
            if one.get("thread_ts", one["ts"]) == one["ts"]
            or one.get("subtype") == "thread_broadcast"
        ]
        return sorted(roots, key=lambda one: str(one["ts"]), reverse=True)

    def replies(self, channel: str, root: str) -> list[Shape]:
        """Return a thread, its root first."""
        said = self.channel(channel).messages.values()
        thread = [one for one in said if root in {one["ts"], one.get("thread_ts")}]
        if not thread:
            raise NotThereError("thread_not_found")
        return sorted(thread, key=lambda one: str(one["ts"]))
