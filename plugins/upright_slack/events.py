"""Events: what Slack tells of a channel, as typed parts; the only place that knows its subtypes.

Source: docs.slack.dev, "Events API" and the reference of the event ``message``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from upright.kit.payload import Json

SAID: Final = frozenset({"", "bot_message", "file_share", "me_message", "thread_broadcast"})
REACTIONS: Final = {"reaction_added": "reaction.added", "reaction_removed": "reaction.removed"}


class What(StrEnum):
    """What an event is to us."""

    SAID = "message.created"
    EDITED = "message.edited"
    DELETED = "message.deleted"
    REACTED = "reaction.added"
    UNREACTED = "reaction.removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. ``ts`` is the message's own, ``at`` that of what happened to it.

    ``before`` is the text before an edit; ``version`` tells edits, and reactions, apart. ``plain``:
    a person typed it as it stands, and has not changed it; nothing is attached or forwarded.
    """

    what: What
    channel: str
    ts: str
    at: str
    root: str
    user: str = ""
    bot: str = ""
    name: str = ""
    text: str = ""
    before: str = ""
    version: str = ""
    direct: bool = False
    parent_user: str = ""
    files: tuple[str, ...] = ()
    plain: bool = False

    @property
    def key(self) -> str:
        """Return what this is known by, by whichever road it comes."""
        words = {What.SAID: "message", What.EDITED: "edit", What.DELETED: "deleted"}
        head = f"{words.get(self.what, self.what.value)}:{self.channel}:{self.ts}"
        return f"{head}:{self.version}" if self.version else head


def read(json: Json) -> Event | None:
    """Read the inner event of a callback; None: nothing that we tell of.

    Raises:
        TriggerRejectedError: it lacks what such an event always has.
    """
    match json.maybe_text("type"):
        case "message":
            return _of_message(json)
        case "app_mention":
            return _said(json, json)
        case "reaction_added" | "reaction_removed" as kind:
            return _reaction(json, What(REACTIONS[kind]))
        case _:
            return None


def _of_message(json: Json) -> Event | None:
    match json.maybe_text("subtype"):
        case "message_changed":
            return _changed(json)
        case "message_deleted":
            return _deleted(json, json.maybe_part("previous_message") or Json({}))
        case subtype if subtype in SAID:
            return _said(json, json)
        case _:
            return None  # joins, topics, pins: noise


def _said(outer: Json, message: Json) -> Event:
    """Read a message; *outer* tells where."""
    channel, ts = outer.text("channel"), message.text("ts")
    profile = message.maybe_part("bot_profile") or Json({})
    files = (one.maybe_text("url_private") for one in message.parts("files"))
    return Event(
        what=What.SAID,
        channel=channel,
        ts=ts,
        at=ts,
        root=message.maybe_text("thread_ts") or ts,
        user=message.maybe_text("user"),
        bot=message.maybe_text("bot_id"),
        name=message.maybe_text("username") or profile.maybe_text("name"),
        text=message.maybe_text("text"),
        direct=outer.maybe_text("channel_type") == "im" or channel.startswith("D"),
        parent_user=message.maybe_text("parent_user_id"),
        files=tuple(filter(None, files)),
        plain=_is_plain(message),
    )


_PLAIN: Final = frozenset({"", "thread_broadcast"})
_NOT_TYPED: Final = ("bot_id", "app_id", "edited", "files", "attachments", "upload")


def _is_plain(message: Json) -> bool:
    """Say whether a person has typed a message just so: no app, no edit, nothing shared with it."""
    typed = message.maybe_text("subtype") in _PLAIN and bool(message.maybe_text("user"))
    return typed and not any(message.value.get(key) for key in _NOT_TYPED)


def _changed(json: Json) -> Event | None:
    """Read a change: an edit, or a deletion that leaves a tombstone; a preview is neither."""
    message = json.part("message")
    if message.maybe_text("subtype") == "tombstone":
        return _deleted(json, message)
    previous = json.maybe_part("previous_message") or Json({})
    mark, before = _edited(message), previous.maybe_text("text")
    if message.maybe_text("text") == before and mark == _edited(previous):
        return None
    event = _said(json, message)
    editor = (message.maybe_part("edited") or Json({})).maybe_text("user")
    at = mark or json.maybe_text("event_ts") or json.maybe_text("ts") or event.ts
    user = editor or event.user
    return replace(event, what=What.EDITED, user=user, at=at, version=at, before=before)


def _edited(message: Json) -> str:
    return (message.maybe_part("edited") or Json({})).maybe_text("ts")


def _deleted(json: Json, was: Json) -> Event:
    ts = json.maybe_text("deleted_ts") or was.text("ts")
    channel = json.text("channel")
    return Event(
        what=What.DELETED,
        channel=channel,
        ts=ts,
        at=json.maybe_text("event_ts") or json.maybe_text("ts") or ts,
        root=was.maybe_text("thread_ts") or ts,
        user=was.maybe_text("user"),
        bot=was.maybe_text("bot_id"),
        direct=channel.startswith("D"),
    )


def _reaction(json: Json, what: What) -> Event | None:
    item = json.part("item")
    if item.maybe_text("type") != "message" or not item.maybe_text("ts"):
        return None  # files and their comments
    user, name, at = (json.maybe_text(key) for key in ("user", "reaction", "event_ts"))
    return Event(
        what=what,
        channel=item.text("channel"),
        ts=item.text("ts"),
        at=at or item.text("ts"),
        root=item.text("ts"),
        user=user,
        text=name,
        version=f"{user}:{name}:{at}",
    )
