"""Events: a room's event as typed parts; the only place that knows the shape of its content.

Source: spec.matrix.org, client-server API: "Room events", "Instant messaging", "Event
replacements", "Rich replies", "Threading", "User and room mentions".
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

from upright.api import TriggerRejectedError
from upright.kit.payload import Json

MESSAGE: Final = "m.room.message"
ENCRYPTED: Final = "m.room.encrypted"
MEMBER: Final = "m.room.member"
_NOT_SAID: Final = frozenset({"m.key.verification.request", "m.location"})
_PILL: Final = re.compile(
    r"""<a\s[^>]*href\s*=\s*["']https://matrix\.to/#/([^"'?]+)""", re.IGNORECASE
)
_FALLBACK: Final = re.compile(r"\A(?:> [^\n]*(?:\n|\Z))+\n?")
_MAX_SCANNED: Final = 65_536


class What(StrEnum):
    """What an event is to us."""

    SAID = "said"
    EDITED = "edited"
    REACTED = "reacted"
    TAKEN_BACK = "taken back"
    NOISE = "noise"  # joins, calls, state, what has no text any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. ``target``: what it edits, redacts or reacts to; ``root``: the thread it names.

    ``plain``: somebody typed the text as it stands; nothing is quoted in it.
    """

    id: str
    what: What
    sender: str
    at: datetime
    type: str
    text: str = ""
    html: str = ""
    target: str = ""
    root: str = ""
    replies_to: str = ""
    mentions: frozenset[str] = frozenset()
    notice: bool = False
    media: str = ""
    plain: bool = False


def read(raw: object) -> Event:
    """Read one event as it stands in a timeline.

    Raises:
        TriggerRejectedError: it lacks what every event has.
    """
    if not isinstance(raw, dict):
        raise TriggerRejectedError("An event is no object")
    json = Json(raw)
    content = json.maybe_part("content") or Json({}, "content")
    event = Event(
        id=json.text("event_id"),
        what=What.NOISE,
        sender=json.text("sender"),
        at=_moment(json.number("origin_server_ts")),
        type=json.text("type"),
    )
    if event.type == MESSAGE and "state_key" not in raw:
        return _message(content, event)
    if event.type == "m.reaction" and (relates := content.maybe_part("m.relates_to")):
        what, key = What.REACTED, relates.maybe_text("key")
        return _about(event, what, relates.maybe_text("event_id"), key)
    if event.type == "m.room.redaction":
        target = content.maybe_text("redacts") or json.maybe_text("redacts")
        return _about(event, What.TAKEN_BACK, target, content.maybe_text("reason"))
    return event


def _about(event: Event, what: What, target: str, text: str) -> Event:
    return replace(event, what=what, target=target, text=text) if target else event


def _message(content: Json, event: Event) -> Event:
    relates = content.maybe_part("m.relates_to") or Json({})
    rel_type, target = relates.maybe_text("rel_type"), relates.maybe_text("event_id")
    edit = rel_type == "m.replace" and bool(target)
    # An edit that shows nothing new (no m.new_content) says what stands outside.
    said = (content.maybe_part("m.new_content") if edit else None) or content
    body, kind = said.maybe_text("body"), said.maybe_text("msgtype")
    answered = relates.maybe_part("m.in_reply_to") or Json({})
    replies_to = answered.maybe_text("event_id")
    falls_back = rel_type == "m.thread" and relates.flag("is_falling_back")
    what = What.EDITED if edit else What.SAID
    if not body or kind in _NOT_SAID:
        what = What.NOISE
    return replace(
        event,
        what=what,
        text=without_fallback(body) if replies_to else body,
        html=said.maybe_text("formatted_body")[:_MAX_SCANNED],
        target=target if edit else "",
        root=target if rel_type == "m.thread" else "",
        replies_to="" if falls_back else replies_to,
        mentions=_mentions(content),
        notice=kind == "m.notice",
        media=said.maybe_text("url"),
        plain=kind == "m.text" and not edit and not body.startswith("> "),
    )


def _mentions(content: Json) -> frozenset[str]:
    told = content.maybe_part("m.mentions")
    users = told.value.get("user_ids") if told else None
    listed = users if isinstance(users, list) else []
    return frozenset(user for user in listed if isinstance(user, str))


def _moment(milliseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise TriggerRejectedError("An event has no time at origin_server_ts") from error


def without_fallback(body: str) -> str:
    """Return a reply's own words: older clients put what they answer before it, quoted."""
    return _FALLBACK.sub("", body, count=1) if body.startswith("> <") else body


def names(event: Event, user_id: str, shown: str) -> bool:
    """Tell whether a message names a user: by mention, by pill, or by name at its start."""
    if user_id in event.mentions:
        return True
    pills = {unquote(html.unescape(hit)) for hit in _PILL.findall(event.html)}
    if user_id in pills or user_id in event.text:
        return True
    local = user_id[1:].partition(":")[0]
    return any(_begins(event.text, name) for name in (shown, local) if name)


def _begins(text: str, name: str) -> bool:
    """Tell whether a text begins with a name: ``name:``, ``name,`` or ``@name`` before a blank."""
    said = text.lstrip()
    ends = {":", ",", "", "\n", " "} if said.startswith("@") else {":", ",", "", "\n"}
    head = said.removeprefix("@")[: len(name) + 1].lower()
    return head.startswith(name.lower()) and head[len(name) :] in ends
